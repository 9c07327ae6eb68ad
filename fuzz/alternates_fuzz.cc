// Any bytes given as an alternates file: refused, or paths inside the store that read back from what we write.
#include <cstdint>
#include <string>

#include "objects/alternates.h"
#include "storage/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using repotxn::storage::StorePath;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const StorePath here = StorePath::Literal("repositories/@id/aa/x.git/objects");
  const auto targets = repotxn::objects::ParseAlternates(text, here, "/srv/store");
  if (!targets.ok()) return 0;
  bool is_writable = true;
  for (const StorePath& target : *targets) {
    REPOTXN_DCHECK(!target.IsRoot() && !(target == here));
    // A newline can be read from a quoted line; our own paths have none.
    is_writable = is_writable && target.text().find('\n') == std::string::npos;
  }
  if (!is_writable) return 0;
  const std::string written = repotxn::objects::FormatAlternates(here, *targets);
  const auto again = repotxn::objects::ParseAlternates(written, here, "");
  REPOTXN_DCHECK(again.ok() && *again == *targets);
  return 0;
}
