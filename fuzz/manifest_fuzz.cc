// Manifests and dropped lists: whatever decodes must encode to the very same bytes.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "wal/manifest_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const absl::string_view view(bytes.data(), bytes.size());
  const auto manifest = repotxn::wal::DecodeManifest(view);
  if (manifest.ok() && repotxn::wal::EncodeManifest(*manifest) != bytes) std::abort();
  const auto dropped = repotxn::wal::DecodeDropped(view);
  if (dropped.ok() && repotxn::wal::EncodeDropped(*dropped) != bytes) std::abort();
  return 0;
}
