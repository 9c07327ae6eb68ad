// Checksums of three strengths, each for one purpose.
//
//   XXH3-64    guards a record against accident; seeded with a salt it also refuses a stale record.
//   XXH3-128   chains log entries.
//   SHA-256    decides whether bytes are the same when somebody may gain from a collision (payload
//   files).
//
// Thread-safe functions; Sha256Stream is Externally synchronised by its owner.
#ifndef REPOTXN_STORAGE_CHECKSUM_H_
#define REPOTXN_STORAGE_CHECKSUM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace repotxn::storage {

uint64_t Xxh3(absl::string_view data);
uint64_t Xxh3Seeded(absl::string_view data, uint64_t seed);

// An XXH3-128 in the canonical order of its definition (most significant byte first): the same
// bytes on every machine.
struct Xxh128 {
  std::array<uint8_t, 16> bytes{};

  absl::string_view view() const {
    return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  friend bool operator==(const Xxh128&, const Xxh128&) = default;
};
static_assert(sizeof(Xxh128) == 16);

Xxh128 Xxh3Wide(absl::string_view data);

inline constexpr size_t kSha256Bytes = 32;

// The 32 raw bytes.
std::string Sha256(absl::string_view data);

// The 20 raw bytes, for files whose format asks for it; never a proof of anything.
std::string Sha1(absl::string_view data);

// SHA-256 of data that arrives in pieces.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  Sha256Stream(Sha256Stream&&) noexcept;
  Sha256Stream& operator=(Sha256Stream&&) noexcept;

  void Update(absl::string_view data);
  // The 32 raw bytes of all that came so far; afterwards the stream is as new.
  std::string Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_CHECKSUM_H_
