// Any bytes given as the index of a pack: refused by type, or answering look-ups inside itself.
#include <cstdint>
#include <memory>
#include <string>

#include "objects/pack_index.h"
#include "storage/check.h"
#include "tests/objects/text_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using repotxn::ObjectFormat;
  using repotxn::objects::PackIndex;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const ObjectFormat format : {ObjectFormat::kSha1, ObjectFormat::kSha256}) {
    for (const int64_t resident_bytes_max : {int64_t{0}, PackIndex::kResidentBytesMax}) {
      const auto index =
          PackIndex::FromFile(std::make_unique<repotxn::testing::TextFile>(bytes), "fuzz", format,
                              resident_bytes_max);
      if (!index.ok()) continue;
      const auto ids = (*index)->Ids(0, 100);
      REPOTXN_DCHECK(ids.ok());
      for (const auto& id : *ids) {
        const auto found = (*index)->Find(id);
        REPOTXN_DCHECK(!found.ok() || !*found || **found >= 0);
      }
    }
  }
  return 0;
}
