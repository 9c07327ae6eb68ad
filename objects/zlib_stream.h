// Inflates one zlib stream from memory or from pieces, with a bound on what comes out.
//
// Single-threaded (the thread that owns it).
#ifndef REPOTXN_OBJECTS_ZLIB_STREAM_H_
#define REPOTXN_OBJECTS_ZLIB_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace repotxn::objects {

class ZlibStream {
 public:
  ZlibStream();
  ~ZlibStream();
  ZlibStream(const ZlibStream&) = delete;
  ZlibStream& operator=(const ZlibStream&) = delete;

  // Inflates from `input`, appending to `out` until it is `bytes_max` long, the input is used up or
  // the stream ends. Returns through `used` how much of `input` was taken. kDataLoss when the
  // stream is damaged.
  absl::Status Feed(absl::string_view input, size_t bytes_max, std::string* out, size_t* used);

  // Whether the stream's end, with its checksum, was met.
  bool is_finished() const { return is_finished_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  bool is_finished_ = false;
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_ZLIB_STREAM_H_
