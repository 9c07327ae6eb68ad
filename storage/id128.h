// Distinct 128-bit identifier types: RepositoryId, TransactionId, StoreId.
//
// Random, never counters, never reused: nothing about an id has to be remembered across a crash. Text form is 32
// lower-case hex digits.
//
// Value types, trivially copyable. Thread-compatible.
#ifndef REPOTXN_STORAGE_ID128_H_
#define REPOTXN_STORAGE_ID128_H_

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn {

namespace internal {
std::string HexOf(const uint8_t* bytes, size_t size);
// Decodes exactly 2*size lower- or upper-case hex digits. Returns false on anything else.
bool BytesOfHex(absl::string_view hex, uint8_t* bytes, size_t size);
absl::Status MalformedId(absl::string_view what);
}  // namespace internal

template <typename Tag>
class Id128 {
 public:
  static constexpr size_t kBytes = 16;

  constexpr Id128() = default;
  explicit constexpr Id128(const std::array<uint8_t, kBytes>& bytes) : bytes_(bytes) {}

  // kInvalidArgument unless `bytes` has 16 bytes.
  static absl::StatusOr<Id128> FromBytes(absl::string_view bytes) {
    if (bytes.size() != kBytes) return internal::MalformedId(Tag::kName);
    Id128 id;
    std::memcpy(id.bytes_.data(), bytes.data(), kBytes);
    return id;
  }
  // kInvalidArgument unless `hex` is 32 hex digits.
  static absl::StatusOr<Id128> FromHex(absl::string_view hex) {
    Id128 id;
    if (!internal::BytesOfHex(hex, id.bytes_.data(), kBytes)) return internal::MalformedId(Tag::kName);
    return id;
  }

  std::string ToHex() const { return internal::HexOf(bytes_.data(), kBytes); }
  absl::string_view bytes() const {
    return absl::string_view(reinterpret_cast<const char*>(bytes_.data()), kBytes);
  }
  bool IsZero() const { return bytes_ == std::array<uint8_t, kBytes>{}; }

  friend auto operator<=>(const Id128&, const Id128&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Id128& id) {
    return H::combine(std::move(h), id.bytes_);
  }

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

struct RepositoryIdTag { static constexpr absl::string_view kName = "repository id"; };
struct TransactionIdTag { static constexpr absl::string_view kName = "transaction id"; };
struct StoreIdTag { static constexpr absl::string_view kName = "store id"; };

using RepositoryId = Id128<RepositoryIdTag>;
using TransactionId = Id128<TransactionIdTag>;
using StoreId = Id128<StoreIdTag>;

}  // namespace repotxn

#endif  // REPOTXN_STORAGE_ID128_H_
