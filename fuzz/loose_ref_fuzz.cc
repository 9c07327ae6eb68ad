// Loose refs: what is read and written again reads the same, and only damage is refused.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "refs/loose_refs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using repotxn::ObjectFormat;
  const std::string content(reinterpret_cast<const char*>(data), size);
  for (const ObjectFormat format : {ObjectFormat::kSha1, ObjectFormat::kSha256}) {
    const auto value = repotxn::refs::ParseLooseRef(content, format, "refs/heads/a");
    if (!value.ok()) {
      if (!absl::IsDataLoss(value.status())) std::abort();
      continue;
    }
    if (value->is_absent()) std::abort();
    const auto again =
        repotxn::refs::ParseLooseRef(repotxn::refs::EncodeLooseRef(*value), format, "");
    if (!again.ok() || !(*again == *value)) std::abort();
    const auto logged = repotxn::refs::RefValue::FromLogged(value->ToLogged());
    if (!logged.ok() || !(*logged == *value)) std::abort();
  }
  return 0;
}
