#include "wal/segment_window.h"

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "storage/check.h"
#include "storage/status_macros.h"
#include "wal/byte_order.h"

namespace repotxn::wal {

absl::StatusOr<absl::string_view> SegmentWindow::View(int64_t offset, size_t bytes) {
  if (offset < 0 || offset >= file_bytes_) return absl::string_view();
  const int64_t wanted = std::min<int64_t>(static_cast<int64_t>(bytes), file_bytes_ - offset);
  const int64_t end = start_ + static_cast<int64_t>(buffer_.size());
  if (offset < start_ || offset + wanted > end) {
    const int64_t read = std::min(std::max(wanted, read_bytes_), file_bytes_ - offset);
    std::string buffer(static_cast<size_t>(read), '\0');
    REPOTXN_ASSIGN_OR_RETURN(const size_t got,
                             file_->ReadAt(offset, absl::Span<char>(&buffer[0], buffer.size())));
    buffer.resize(got);
    buffer_ = std::move(buffer);
    start_ = offset;
  }
  const absl::string_view all(buffer_.data(), buffer_.size());
  return all.substr(static_cast<size_t>(offset - start_), static_cast<size_t>(wanted));
}

absl::Status ForEachRecordMagic(SegmentWindow* window, int64_t from, uint32_t magic,
                                const std::function<absl::Status(int64_t offset)>& found) {
  REPOTXN_DCHECK(from % 8 == 0 && window->read_bytes() % 8 == 0);
  std::vector<int64_t> places;
  for (int64_t offset = from; offset < window->file_bytes(); offset += window->read_bytes()) {
    REPOTXN_ASSIGN_OR_RETURN(const absl::string_view bytes,
                             window->View(offset, static_cast<size_t>(window->read_bytes())));
    places.clear();
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      if (Load32(bytes, i) == magic) places.push_back(offset + static_cast<int64_t>(i));
    }
    // Not while looking at `bytes`: `found` moves the window.
    for (const int64_t place : places) REPOTXN_RETURN_IF_ERROR(found(place));
  }
  return absl::OkStatus();
}

}  // namespace repotxn::wal
