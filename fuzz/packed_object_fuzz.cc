// Any bytes given as a pack whose entries begin where the first byte says, as a delta and as a loose object.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "objects/object_reader.h"
#include "storage/check.h"
#include "tests/objects/text_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace repotxn::objects;
  using repotxn::ObjectFormat;
  constexpr int64_t kBytesMax = 1 << 16;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto pack = PackFile::FromFile(std::make_unique<repotxn::testing::TextFile>(bytes), "fuzz",
                                       ObjectFormat::kSha1);
  if (pack.ok()) {
    for (int64_t offset = 0; offset < 64; ++offset) {
      const auto header = (*pack)->ReadHeader(offset);
      if (!header.ok() || header->size > kBytesMax) continue;
      const auto inflated = (*pack)->Inflate(offset, *header, header->size);
      REPOTXN_DCHECK(!inflated.ok() || static_cast<int64_t>(inflated->size()) == header->size);
    }
  }
  const auto loose = ParseLooseObject(bytes, kBytesMax);
  REPOTXN_DCHECK(!loose.ok() || static_cast<int64_t>(loose->content.size()) <= kBytesMax);
  // The first byte says how many of the following are the base of a delta.
  if (bytes.empty()) return 0;
  const size_t base_bytes = std::min<size_t>(static_cast<uint8_t>(bytes[0]), bytes.size() - 1);
  const absl::string_view rest(bytes.data() + 1, bytes.size() - 1);
  const auto result = ApplyDelta(rest.substr(0, base_bytes), rest.substr(base_bytes), kBytesMax);
  REPOTXN_DCHECK(!result.ok() || static_cast<int64_t>(result->size()) <= kBytesMax);
  return 0;
}
