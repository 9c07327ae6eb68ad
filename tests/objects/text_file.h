// A ReadableFile over bytes in memory, for readers that are given damaged files.
//
// Thread-compatible.
#ifndef REPOTXN_TESTS_OBJECTS_TEXT_FILE_H_
#define REPOTXN_TESTS_OBJECTS_TEXT_FILE_H_

#include <algorithm>
#include <string>
#include <utility>

#include "storage/file_system.h"

namespace repotxn::testing {

class TextFile final : public storage::ReadableFile {
 public:
  explicit TextFile(std::string bytes) : bytes_(std::move(bytes)) {}

  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> out) const override {
    const size_t at = std::min(static_cast<size_t>(std::max<int64_t>(0, offset)), bytes_.size());
    return bytes_.copy(out.data(), out.size(), at);
  }
  absl::StatusOr<int64_t> Size() const override { return static_cast<int64_t>(bytes_.size()); }

 private:
  const std::string bytes_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_OBJECTS_TEXT_FILE_H_
