#include "objects/zlib_stream.h"

#include <zlib.h>

#include <algorithm>

#include "storage/check.h"

namespace repotxn::objects {
namespace {

// Output grows by steps of this many bytes, so that a size that somebody only claims costs no
// memory.
constexpr size_t kStepBytes = 16 << 10;

}  // namespace

struct ZlibStream::State {
  z_stream stream{};
  bool is_ready = false;
};

ZlibStream::ZlibStream() : state_(std::make_unique<State>()) {
  state_->is_ready = inflateInit(&state_->stream) == Z_OK;
}

ZlibStream::~ZlibStream() {
  if (state_->is_ready) inflateEnd(&state_->stream);
}

absl::Status ZlibStream::Feed(absl::string_view input, size_t bytes_max, std::string* out,
                              size_t* used) {
  *used = 0;
  if (!state_->is_ready) return absl::ResourceExhaustedError("no memory for inflating");
  z_stream& stream = state_->stream;
  // zlib does not write through next_in, but its type says so.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
  stream.avail_in = static_cast<uInt>(input.size());
  REPOTXN_DCHECK(stream.avail_in == input.size());
  Bytef spare;
  while (!is_finished_) {
    const size_t before = out->size();
    const size_t room = std::min(kStepBytes, bytes_max > before ? bytes_max - before : 0);
    out->resize(before + room);
    // With no room left one more call may still read the end of the stream; a byte that comes out
    // then is too much.
    stream.next_out = room > 0 ? reinterpret_cast<Bytef*>(out->data() + before) : &spare;
    stream.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
    const int result = inflate(&stream, Z_NO_FLUSH);
    const size_t unused = stream.avail_out;
    *used = input.size() - stream.avail_in;
    if (room > 0) out->resize(before + room - unused);
    if (result == Z_STREAM_END) is_finished_ = true;
    if (result == Z_MEM_ERROR) return absl::ResourceExhaustedError("no memory for inflating");
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return absl::DataLossError("zlib stream is damaged");
    }
    if (room == 0) {
      return unused == 0 ? absl::DataLossError("zlib stream is longer than announced")
                         : absl::OkStatus();
    }
    if (unused > 0) break;  // wants more input, or has ended
  }
  return absl::OkStatus();
}

}  // namespace repotxn::objects
