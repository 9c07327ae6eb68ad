#include "daemon/pkt_line.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "storage/check.h"

namespace repotxn::daemon {
namespace {

// Value of a hex digit, -1 for anything else.
int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The four length digits; -1 when one is no digit.
int ParseLength(absl::string_view digits) {
  int length = 0;
  for (const char c : digits) {
    const int value = HexValue(c);
    if (value < 0) return -1;
    length = length * 16 + value;
  }
  return length;
}

void AppendLength(size_t length, std::string* out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (int shift = 12; shift >= 0; shift -= 4) out->push_back(kDigits[(length >> shift) & 0xf]);
}

}  // namespace

void AppendPkt(absl::string_view payload, std::string* out) {
  REPOTXN_DCHECK(payload.size() <= kPktPayloadBytesMax);
  payload = payload.substr(0, kPktPayloadBytesMax);
  AppendLength(payload.size() + kPktHeaderBytes, out);
  out->append(payload.data(), payload.size());
}

void AppendFlush(std::string* out) { out->append("0000"); }
void AppendDelimiter(std::string* out) { out->append("0001"); }
void AppendResponseEnd(std::string* out) { out->append("0002"); }

void AppendBand(Band band, absl::string_view data, std::string* out) {
  while (!data.empty()) {
    const absl::string_view piece = data.substr(0, kBandPayloadBytesMax);
    AppendLength(piece.size() + 1 + kPktHeaderBytes, out);
    out->push_back(static_cast<char>(band));
    out->append(piece.data(), piece.size());
    data.remove_prefix(piece.size());
  }
}

void AppendKeepAlive(std::string* out) {
  AppendLength(1 + kPktHeaderBytes, out);
  out->push_back(static_cast<char>(Band::kData));
}

void PktDecoder::Feed(absl::string_view bytes) {
  // What was used goes before the buffer grows, so it never holds more than one frame and one feed.
  if (consumed_ > 0) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  buffer_.append(bytes.data(), bytes.size());
}

absl::StatusOr<std::optional<Pkt>> PktDecoder::Next() {
  if (is_broken_) return absl::InvalidArgumentError("malformed length of a frame");
  const absl::string_view rest = absl::string_view(buffer_).substr(consumed_);
  if (rest.size() < kPktHeaderBytes) return std::optional<Pkt>();

  const int length = ParseLength(rest.substr(0, kPktHeaderBytes));
  const int length_max = static_cast<int>(kPktHeaderBytes + kPktPayloadBytesMax);
  if (length < 0 || length == 3 || length > length_max) {
    is_broken_ = true;
    return absl::InvalidArgumentError("malformed length of a frame");
  }
  if (length < static_cast<int>(kPktHeaderBytes)) {
    consumed_ += kPktHeaderBytes;
    static constexpr PktKind kKinds[] = {PktKind::kFlush, PktKind::kDelimiter,
                                         PktKind::kResponseEnd};
    return std::optional<Pkt>(Pkt{kKinds[length], ""});
  }
  const size_t size = static_cast<size_t>(length);
  if (rest.size() < size) return std::optional<Pkt>();
  const absl::string_view payload = rest.substr(kPktHeaderBytes, size - kPktHeaderBytes);
  consumed_ += size;
  return std::optional<Pkt>(Pkt{PktKind::kData, std::string(payload.data(), payload.size())});
}

std::string PktDecoder::TakeRest() {
  std::string rest = buffer_.substr(consumed_);
  buffer_.clear();
  consumed_ = 0;
  return rest;
}

}  // namespace repotxn::daemon
