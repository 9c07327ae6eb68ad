// Log sequence number: the place of an entry in a store's one log.
//
// Dense, starting at 1; Lsn::Zero() is "before the first entry". Told to the outside together with the store's
// incarnation, which a restore changes.
#ifndef REPOTXN_WAL_LSN_H_
#define REPOTXN_WAL_LSN_H_

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

namespace repotxn::wal {

class Lsn {
 public:
  constexpr Lsn() = default;
  explicit constexpr Lsn(uint64_t value) : value_(value) {}
  static constexpr Lsn Zero() { return Lsn(0); }
  static constexpr Lsn Max() { return Lsn(UINT64_MAX); }

  constexpr uint64_t value() const { return value_; }
  constexpr Lsn Next() const { return Lsn(value_ + 1); }
  constexpr Lsn Previous() const { return Lsn(value_ - 1); }
  std::string ToString() const { return std::to_string(value_); }

  friend constexpr auto operator<=>(Lsn, Lsn) = default;
  template <typename H>
  friend H AbslHashValue(H h, Lsn lsn) {
    return H::combine(std::move(h), lsn.value_);
  }

 private:
  uint64_t value_ = 0;
};

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_LSN_H_
