// A bounded memory of rows as the metadata store holds them, in two generations.
//
// A row that is used moves to the young generation; when that is full it becomes the old one, and what nobody used since
// the change before is forgotten. So the rows in use stay, without a list to keep in order.
//
// Externally synchronised by the owner's mutex, which also decides when a row may enter (txn/row_space.h).
#ifndef REPOTXN_TXN_ROW_CACHE_H_
#define REPOTXN_TXN_ROW_CACHE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace repotxn::txn {

template <typename Value>
class RowCache {
 public:
  // Holds at most twice as many rows.
  explicit RowCache(size_t generation_rows) : generation_rows_(generation_rows) {}

  // nullptr when it is not here; valid until the next call.
  const Value* Find(absl::string_view key) {
    if (const auto it = young_.find(key); it != young_.end()) return &it->second;
    const auto it = old_.find(key);
    if (it == old_.end()) return nullptr;
    Value value = std::move(it->second);
    old_.erase(it);
    return Keep(key, std::move(value));
  }
  void Put(absl::string_view key, Value value) {
    old_.erase(key);
    Keep(key, std::move(value));
  }
  void Erase(absl::string_view key) {
    young_.erase(key);
    old_.erase(key);
  }
  size_t size() const { return young_.size() + old_.size(); }

 private:
  const Value* Keep(absl::string_view key, Value value) {
    if (young_.size() >= generation_rows_ && !young_.contains(key)) {
      old_ = std::exchange(young_, {});
    }
    Value& kept = young_[std::string(key.data(), key.size())];
    kept = std::move(value);
    return &kept;
  }

  const size_t generation_rows_;
  absl::flat_hash_map<std::string, Value> young_;
  absl::flat_hash_map<std::string, Value> old_;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_ROW_CACHE_H_
