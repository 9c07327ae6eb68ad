// The written keys of committed entries in LSN order, oldest out first.
//
// A queue of chunks filled front to back: entering costs a copy of the own names, evicting frees whole chunks. Chunks
// have 1 KiB first and double up to 64 KiB, so that an idle partition holds little and a busy one calls the allocator
// once in some hundred entries; an entry that fits no such chunk gets one of its own.
//
// Layout of a record in a chunk, each part at a multiple of 8 bytes:
//   RecordHeader | key_count times: WrittenKey, KeyNode when kind is kKey, the bytes of the name
//
// Externally synchronised; const calls may be concurrent. Pointers into a record are good until it is popped.
#ifndef REPOTXN_LOCKS_RECORD_LOG_H_
#define REPOTXN_LOCKS_RECORD_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "locks/footprint.h"
#include "locks/key_index.h"
#include "locks/lock_key.h"
#include "storage/id128.h"
#include "wal/lsn.h"

namespace repotxn::locks {

struct RecordHeader {
  wal::Lsn lsn;
  TransactionId transaction_id;
  uint32_t size = 0;        // bytes, this header included
  uint32_t key_count = 0;
};

// One exclusive key of a record; its name follows it.
struct WrittenKey {
  RepositoryId id;
  uint32_t name_size = 0;
  KeyKind kind = KeyKind::kEntry;
  Effect effect = Effect::kNone;

  // nullptr unless kind is kKey.
  KeyNode* node();
  absl::string_view name() const;
  size_t size() const;      // bytes with what follows it
};

class RecordLog {
 public:
  static constexpr size_t kChunkBytesMin = 1 << 10;
  static constexpr size_t kChunkBytesMax = 64 << 10;

  // Appends the exclusive keys of `footprint` (there is at least one) under `lsn`, the greatest so far, and hands each
  // to `visit` with its place in the footprint.
  void Append(const Footprint& footprint, wal::Lsn lsn, const TransactionId& transaction_id,
              absl::FunctionRef<void(size_t, WrittenKey*)> visit);

  bool empty() const { return record_count_ == 0; }
  // The oldest record. Not empty.
  const RecordHeader& front() const;
  // Hands every key of the oldest record to `visit` and removes the record.
  void PopFront(absl::FunctionRef<void(WrittenKey*)> visit);

  // Calls `visit` for every key written after `lsn`, in LSN order, until it returns false.
  void ForEachAfter(wal::Lsn lsn,
                    absl::FunctionRef<bool(wal::Lsn, const WrittenKey&)> visit) const;
  // Transaction recorded under `lsn`; zero when there is none. Cost: a binary search and one chunk.
  TransactionId TransactionAt(wal::Lsn lsn) const;

  size_t record_count() const { return record_count_; }
  size_t key_count() const { return key_count_; }
  // Memory held, in bytes.
  size_t bytes() const { return bytes_; }

 private:
  struct Chunk {
    std::unique_ptr<uint64_t[]> words;
    size_t capacity = 0;    // bytes
    size_t begin = 0;       // offset of the oldest record
    size_t end = 0;         // offset behind the newest record
    wal::Lsn last_lsn;

    char* at(size_t offset) const { return reinterpret_cast<char*>(words.get()) + offset; }
  };
  char* Allocate(size_t size);

  std::deque<Chunk> chunks_;
  size_t record_count_ = 0;
  size_t key_count_ = 0;
  size_t bytes_ = 0;
};

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_RECORD_LOG_H_
