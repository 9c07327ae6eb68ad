// Any bytes given as the times of a cruft pack, for every number of objects that they may be of: refused, or written again as
// they were.
#include <cstdint>
#include <string>

#include "objects/cruft_times.h"
#include "storage/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace repotxn::objects;
  using repotxn::ObjectFormat;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const ObjectFormat format : {ObjectFormat::kSha1, ObjectFormat::kSha256}) {
    const size_t hash_bytes = repotxn::ObjectIdBytes(format);
    for (int64_t count = 0; count <= static_cast<int64_t>(size / 4); ++count) {
      const auto times = ParseCruftTimes(bytes, count, format);
      if (!times.ok()) continue;
      REPOTXN_DCHECK(static_cast<int64_t>(times->size()) == count);
      REPOTXN_DCHECK(FormatCruftTimes(*times, bytes.substr(size - 2 * hash_bytes, hash_bytes), format) == bytes);
    }
  }
  return 0;
}
