#include "locks/record_log.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "storage/check.h"

namespace repotxn::locks {
namespace {

static_assert(sizeof(RecordHeader) == 32);
static_assert(sizeof(WrittenKey) == 24);
static_assert(sizeof(KeyNode) % 8 == 0 && alignof(KeyNode) <= 8);

size_t RoundUp(size_t size) { return (size + 7) & ~size_t{7}; }

size_t KeySize(KeyKind kind, size_t name_size) {
  return RoundUp(sizeof(WrittenKey) + (kind == KeyKind::kKey ? sizeof(KeyNode) : 0) + name_size);
}

// Makes the key at `place`, with what follows it, out of `lock`.
WrittenKey* PutKey(char* place, const Lock& lock, wal::Lsn lsn, const PrefixHash& hash) {
  auto* key = new (place) WrittenKey;
  key->id = lock.key.id;
  key->name_size = static_cast<uint32_t>(lock.key.bytes.size());
  key->kind = lock.key.kind;
  key->effect = lock.effect;
  char* name = place + sizeof(WrittenKey);
  if (key->kind == KeyKind::kKey) {
    auto* node = new (name) KeyNode;
    name += sizeof(KeyNode);
    node->lsn = lsn;
    node->key_data = name;
    node->key_size = key->name_size;
    node->priority = static_cast<uint32_t>(hash.high);
  }
  std::memcpy(name, lock.key.bytes.data(), lock.key.bytes.size());
  return key;
}

}  // namespace

KeyNode* WrittenKey::node() {
  if (kind != KeyKind::kKey) return nullptr;
  return std::launder(reinterpret_cast<KeyNode*>(this + 1));
}

absl::string_view WrittenKey::name() const {
  const char* after = reinterpret_cast<const char*>(this + 1);
  return absl::string_view(after + (kind == KeyKind::kKey ? sizeof(KeyNode) : 0), name_size);
}

size_t WrittenKey::size() const { return KeySize(kind, name_size); }

char* RecordLog::Allocate(size_t size) {
  if (chunks_.empty() || chunks_.back().capacity - chunks_.back().end < size) {
    const size_t doubled = chunks_.empty() ? kChunkBytesMin : 2 * chunks_.back().capacity;
    Chunk chunk;
    chunk.capacity = std::max(std::min(doubled, kChunkBytesMax), size);
    chunk.words.reset(new uint64_t[chunk.capacity / sizeof(uint64_t)]);
    bytes_ += chunk.capacity;
    chunks_.push_back(std::move(chunk));
  }
  Chunk& chunk = chunks_.back();
  char* place = chunk.at(chunk.end);
  chunk.end += size;
  return place;
}

void RecordLog::Append(const Footprint& footprint, wal::Lsn lsn,
                       const TransactionId& transaction_id,
                       absl::FunctionRef<void(size_t, WrittenKey*)> visit) {
  REPOTXN_DCHECK(footprint.has_exclusive());
  size_t size = sizeof(RecordHeader);
  for (const Lock& lock : footprint.locks()) {
    if (lock.mode == LockMode::kExclusive) size += KeySize(lock.key.kind, lock.key.bytes.size());
  }
  char* place = Allocate(size);
  auto* header = new (place) RecordHeader;
  header->lsn = lsn;
  header->transaction_id = transaction_id;
  header->size = static_cast<uint32_t>(size);
  header->key_count = static_cast<uint32_t>(footprint.exclusive_count());
  chunks_.back().last_lsn = lsn;
  ++record_count_;
  key_count_ += header->key_count;
  place += sizeof(RecordHeader);
  for (size_t i = 0; i < footprint.locks().size(); ++i) {
    const Lock& lock = footprint.locks()[i];
    if (lock.mode != LockMode::kExclusive) continue;
    WrittenKey* key = PutKey(place, lock, lsn, footprint.hashes(i).back());
    place += key->size();
    visit(i, key);
  }
}

const RecordHeader& RecordLog::front() const {
  REPOTXN_DCHECK(!empty());
  const Chunk& chunk = chunks_.front();
  return *std::launder(reinterpret_cast<const RecordHeader*>(chunk.at(chunk.begin)));
}

void RecordLog::PopFront(absl::FunctionRef<void(WrittenKey*)> visit) {
  const RecordHeader header = front();
  Chunk& chunk = chunks_.front();
  char* place = chunk.at(chunk.begin) + sizeof(RecordHeader);
  for (uint32_t i = 0; i < header.key_count; ++i) {
    auto* key = std::launder(reinterpret_cast<WrittenKey*>(place));
    place += key->size();
    visit(key);
  }
  --record_count_;
  key_count_ -= header.key_count;
  chunk.begin += header.size;
  if (chunk.begin < chunk.end) return;
  bytes_ -= chunk.capacity;
  chunks_.pop_front();
}

void RecordLog::ForEachAfter(
    wal::Lsn lsn, absl::FunctionRef<bool(wal::Lsn, const WrittenKey&)> visit) const {
  auto chunk = std::upper_bound(chunks_.begin(), chunks_.end(), lsn,
                                [](wal::Lsn a, const Chunk& b) { return a < b.last_lsn; });
  for (; chunk != chunks_.end(); ++chunk) {
    for (size_t offset = chunk->begin; offset < chunk->end;) {
      const auto* header =
          std::launder(reinterpret_cast<const RecordHeader*>(chunk->at(offset)));
      const char* place = chunk->at(offset) + sizeof(RecordHeader);
      offset += header->size;
      if (header->lsn <= lsn) continue;
      for (uint32_t i = 0; i < header->key_count; ++i) {
        const auto* key = std::launder(reinterpret_cast<const WrittenKey*>(place));
        place += key->size();
        if (!visit(header->lsn, *key)) return;
      }
    }
  }
}

TransactionId RecordLog::TransactionAt(wal::Lsn lsn) const {
  const auto chunk = std::lower_bound(chunks_.begin(), chunks_.end(), lsn,
                                      [](const Chunk& a, wal::Lsn b) { return a.last_lsn < b; });
  if (chunk == chunks_.end()) return TransactionId();
  for (size_t offset = chunk->begin; offset < chunk->end;) {
    const auto* header = std::launder(reinterpret_cast<const RecordHeader*>(chunk->at(offset)));
    if (header->lsn == lsn) return header->transaction_id;
    offset += header->size;
  }
  return TransactionId();
}

}  // namespace repotxn::locks
