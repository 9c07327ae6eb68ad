// Any bytes, cut at any place: the decoder gives the same frames as in one piece, and what it gives
// encodes back to what it took.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "daemon/pkt_line.h"

namespace {

using repotxn::daemon::Pkt;
using repotxn::daemon::PktDecoder;
using repotxn::daemon::PktKind;

void Require(bool holds) {
  if (!holds) std::abort();
}

// Frames until more bytes are needed; false after a malformed length.
bool Drain(PktDecoder& decoder, std::vector<Pkt>* pkts) {
  while (true) {
    absl::StatusOr<std::optional<Pkt>> pkt = decoder.Next();
    if (!pkt.ok()) return false;
    if (!pkt->has_value()) return true;
    pkts->push_back(**pkt);
  }
}

size_t EncodedBytes(const Pkt& pkt) {
  std::string bytes;
  switch (pkt.kind) {
    case PktKind::kData: repotxn::daemon::AppendPkt(pkt.payload, &bytes); break;
    case PktKind::kFlush: repotxn::daemon::AppendFlush(&bytes); break;
    case PktKind::kDelimiter: repotxn::daemon::AppendDelimiter(&bytes); break;
    case PktKind::kResponseEnd: repotxn::daemon::AppendResponseEnd(&bytes); break;
  }
  PktDecoder decoder;
  decoder.Feed(bytes);
  const auto again = decoder.Next();
  Require(again.ok() && again->has_value() && **again == pkt && decoder.empty());
  return bytes.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = 1 + data[0] % 17;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  PktDecoder whole;
  std::vector<Pkt> expected;
  whole.Feed(bytes);
  const bool is_sound = Drain(whole, &expected);

  PktDecoder cut;
  std::vector<Pkt> found;
  bool is_cut_sound = true;
  for (size_t at = 0; at < bytes.size() && is_cut_sound; at += step) {
    cut.Feed(absl::string_view(bytes).substr(at, step));
    is_cut_sound = Drain(cut, &found);
  }
  Require(found == expected && is_cut_sound == is_sound);

  size_t taken = 0;
  for (const Pkt& pkt : expected) taken += EncodedBytes(pkt);
  Require(taken <= bytes.size());
  if (is_sound) Require(whole.TakeRest() == bytes.substr(taken));
  return 0;
}
