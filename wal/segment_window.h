// Reads a segment through a buffer of bounded size, and finds the places where a record may begin.
//
// Single-threaded. Lifetime: the file must outlive the window.
#ifndef REPOTXN_WAL_SEGMENT_WINDOW_H_
#define REPOTXN_WAL_SEGMENT_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"

namespace repotxn::wal {

class SegmentWindow {
 public:
  // Reads at least `read_bytes` at a time.
  SegmentWindow(const storage::ReadableFile* file, int64_t file_bytes, int64_t read_bytes = 1 << 20)
      : file_(file), file_bytes_(file_bytes), read_bytes_(read_bytes) {}

  // Up to `bytes` bytes from `offset` on; fewer only at the end of the file. Valid until the next
  // call.
  absl::StatusOr<absl::string_view> View(int64_t offset, size_t bytes);
  int64_t file_bytes() const { return file_bytes_; }
  int64_t read_bytes() const { return read_bytes_; }

 private:
  const storage::ReadableFile* const file_;
  const int64_t file_bytes_;
  const int64_t read_bytes_;
  std::string buffer_;
  int64_t start_ = 0;  // offset of the buffer in the file
};

// Calls `found` for every multiple of 8 at or behind `from` at which `magic` stands; stops at its
// first error.
absl::Status ForEachRecordMagic(SegmentWindow* window, int64_t from, uint32_t magic,
                                const std::function<absl::Status(int64_t offset)>& found);

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_SEGMENT_WINDOW_H_
