// Any bytes given as a multi-pack-index: refused by type, or names of packs that could be files.
#include <cstdint>
#include <string>

#include "objects/multi_pack_index.h"
#include "objects/trailing_checksum.h"
#include "storage/check.h"
#include "tests/objects/text_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using repotxn::ObjectFormat;
  const repotxn::testing::TextFile file(std::string(reinterpret_cast<const char*>(data), size));
  for (const ObjectFormat format : {ObjectFormat::kSha1, ObjectFormat::kSha256}) {
    const auto names = repotxn::objects::ReadPackNames(file, "fuzz", format);
    REPOTXN_DCHECK(names.ok() || absl::IsDataLoss(names.status()) || absl::IsUnimplemented(names.status()));
    if (names.ok()) {
      for (const std::string& name : *names) REPOTXN_DCHECK(!name.empty() && name.find('/') == std::string::npos);
    }
    const auto checksum = repotxn::objects::VerifyTrailingChecksum(file, "fuzz", format);
    REPOTXN_DCHECK(checksum.ok() || absl::IsDataLoss(checksum.status()));
  }
  return 0;
}
