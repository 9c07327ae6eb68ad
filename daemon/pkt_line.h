// Frames of Git's wire protocol: pkt-lines, and the side bands inside them.
//
// Layout of a frame
//   4 bytes   length of the whole frame in hex digits, either case; 0000, 0001 and 0002 are frames
//             of their own without a payload (flush, delimiter, response end), 0003 is malformed
//   n bytes   payload, 0 to 65,516; a frame of length 4 ("0004") has an empty one
// In a side-band frame the first byte of the payload is the band: 1 data, 2 progress for people,
// 3 fatal error.
//
// Pure: no I/O; what is fed may be cut at any byte.
// Thread-compatible.
#ifndef REPOTXN_DAEMON_PKT_LINE_H_
#define REPOTXN_DAEMON_PKT_LINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn::daemon {

inline constexpr size_t kPktHeaderBytes = 4;
inline constexpr size_t kPktPayloadBytesMax = 65516;
inline constexpr size_t kBandPayloadBytesMax = kPktPayloadBytesMax - 1;

enum class PktKind : uint8_t { kData, kFlush, kDelimiter, kResponseEnd };

struct Pkt {
  PktKind kind = PktKind::kData;
  std::string payload;  // of kData

  friend bool operator==(const Pkt&, const Pkt&) = default;
};

enum class Band : char { kData = 1, kProgress = 2, kFatal = 3 };

// Appends one data frame. Requires payload.size() <= kPktPayloadBytesMax (REPOTXN_DCHECK; what is
// longer is cut).
void AppendPkt(absl::string_view payload, std::string* out);
void AppendFlush(std::string* out);
void AppendDelimiter(std::string* out);
void AppendResponseEnd(std::string* out);
// Appends `data` on `band`, in as many frames as it takes; none for empty data.
void AppendBand(Band band, absl::string_view data, std::string* out);
// An empty frame on band 1: says "still here" to a waiting client.
void AppendKeepAlive(std::string* out);

// Takes bytes as they come and gives frames.
class PktDecoder {
 public:
  void Feed(absl::string_view bytes);

  // The next whole frame; no value when more bytes are needed. kInvalidArgument for a malformed
  // length, after which the decoder gives nothing else.
  absl::StatusOr<std::optional<Pkt>> Next();

  // Bytes fed that no frame has used yet; the decoder is empty afterwards. What follows the last
  // frame of a push (the pack) is taken this way.
  std::string TakeRest();
  bool empty() const { return consumed_ == buffer_.size(); }

 private:
  std::string buffer_;
  size_t consumed_ = 0;  // bytes of buffer_ that became frames
  bool is_broken_ = false;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_PKT_LINE_H_
