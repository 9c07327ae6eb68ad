// Watches a pack as it streams by: its header, its length, and whether it ends in its own trailer.
//
// Git reads a pack from a pipe up to its trailer and takes what follows for somebody else's;
// whether that is noticed depends on how reads fall. Hashing the stream here decides it: the last
// bytes must be the hash of all before them.
//
// Single-threaded (the thread that feeds it).
#ifndef REPOTXN_OBJECTS_PACK_STREAM_H_
#define REPOTXN_OBJECTS_PACK_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/object_id.h"

namespace repotxn::objects {

class PackStream {
 public:
  explicit PackStream(ObjectFormat format);
  ~PackStream();
  PackStream(const PackStream&) = delete;
  PackStream& operator=(const PackStream&) = delete;

  void Add(absl::string_view bytes);

  int64_t bytes() const { return bytes_; }
  // Whether what came so far is a pack's header and more, ended by the hash of everything before.
  bool EndsInItsTrailer();

 private:
  struct Hash;
  const size_t trailer_bytes_;
  std::unique_ptr<Hash> hash_;  // of all but `tail_`
  std::string tail_;            // the last bytes, at most `trailer_bytes_`
  int64_t bytes_ = 0;
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_PACK_STREAM_H_
