#include "storage/metadata_store.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/listener.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"
#include "storage/log.h"
#include "storage/rocksdb_file_system.h"
#include "storage/rocksdb_status.h"
#include "storage/status_macros.h"
#include "storage/sync.h"

namespace repotxn::storage {
namespace {

constexpr size_t kMemtableBytes = 8 << 20;
constexpr size_t kBlockCacheBytes = 16 << 20;
constexpr size_t kManifestBytesMax = 1 << 20;
constexpr int kBackgroundJobs = 2;
constexpr int kOpenFilesMax = 256;
constexpr double kFilterBitsPerKey = 10;

rocksdb::Slice SliceOf(absl::string_view view) { return rocksdb::Slice(view.data(), view.size()); }
absl::string_view ViewOf(const rocksdb::Slice& slice) {
  return absl::string_view(slice.data(), slice.size());
}

// First failure; sticky. Shared with the listener, which RocksDB may keep a little longer than the
// store.
class Poison {
 public:
  void Set(const absl::Status& cause) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    status_ = absl::UnavailableError(absl::StrCat("metadata store is poisoned: ", cause.message()));
  }
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    return status_;
  }

 private:
  mutable Mutex mutex_{MutexRank::kLeaf};
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

class PoisonOnBackgroundError final : public rocksdb::EventListener {
 public:
  explicit PoisonOnBackgroundError(std::shared_ptr<Poison> poison) : poison_(std::move(poison)) {}
  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* status) override {
    const absl::Status cause = FromRocksdb(*status, "background work");
    poison_->Set(cause);
    LogError(absl::StrCat("metadata store: ", cause.ToString()));
  }

 private:
  const std::shared_ptr<Poison> poison_;
};

// RocksDB would write a log file of its own into the directory; its errors reach us as statuses.
class NoLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

rocksdb::Options OptionsFor(rocksdb::Env* env, std::shared_ptr<Poison> poison) {
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // A crash may leave an unsynced tail with holes, so the log is read up to its first damage. A
  // synced batch lies before every unsynced one, and RocksDB syncs older logs first, so all synced
  // ones are kept; a mode that tolerates only a short last record would refuse to open after such a
  // crash.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // A failed write ends the use of the store (I2); no quiet recovery that would call the lost data
  // written.
  options.max_bgerror_resume_count = 0;
  options.listeners.push_back(std::make_shared<PoisonOnBackgroundError>(std::move(poison)));
  options.write_buffer_size = kMemtableBytes;
  options.max_background_jobs = kBackgroundJobs;
  options.max_open_files = kOpenFilesMax;
  options.max_manifest_file_size = kManifestBytesMax;
  options.compression = rocksdb::kNoCompression;  // Mostly ids and digests.
  options.avoid_flush_during_shutdown = true;     // The log has it all.
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log = std::make_shared<NoLogger>();
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// Lets calls in until it is closed, and closes once the last of them has left.
class Gate {
 public:
  // False once closed; else Leave() must follow.
  bool Enter() {
    if ((state_.fetch_add(kCall) & kClosed) == 0) return true;
    Leave();
    return false;
  }
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_) {
    uint64_t state = state_.load();
    while ((state & kClosed) == 0) {
      if (state_.compare_exchange_weak(state, state - kCall)) return;
    }
    // Under the mutex: who closes may destroy us as soon as it sees the last call gone.
    const MutexLock lock(&mutex_);
    state_.fetch_sub(kCall);
    empty_.SignalAll();
  }
  // False when it was closed before.
  bool Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    const bool is_first = (state_.fetch_or(kClosed) & kClosed) == 0;
    const MutexLock lock(&mutex_);
    while (state_.load() != kClosed) empty_.Wait(&mutex_);
    return is_first;
  }

 private:
  static constexpr uint64_t kClosed = 1, kCall = 2;
  std::atomic<uint64_t> state_{0};
  Mutex mutex_{MutexRank::kInnermost};
  CondVar empty_;
};

// The call that a gate let in, for as long as it lasts.
class GatedCall {
 public:
  explicit GatedCall(Gate* gate) : gate_(gate->Enter() ? gate : nullptr) {}
  ~GatedCall() {
    if (gate_ != nullptr) gate_->Leave();
  }
  GatedCall(const GatedCall&) = delete;
  GatedCall& operator=(const GatedCall&) = delete;
  absl::Status status() const {
    return gate_ != nullptr ? absl::OkStatus() : absl::UnavailableError("metadata store is closed");
  }

 private:
  Gate* const gate_;
};

class RocksdbMetadataStore final : public MetadataStore {
 public:
  RocksdbMetadataStore(std::unique_ptr<rocksdb::Env> env, std::shared_ptr<Poison> poison,
                       std::unique_ptr<rocksdb::DB> db)
      : env_(std::move(env)), poison_(std::move(poison)), db_(std::move(db)) {}

  absl::StatusOr<std::string> Get(absl::string_view key) override {
    const GatedCall call(&gate_);
    REPOTXN_RETURN_IF_ERROR(call.status());
    std::string value;
    REPOTXN_RETURN_IF_ERROR(
        FromRocksdb(db_->Get(rocksdb::ReadOptions(), SliceOf(key), &value), "get"));
    return value;
  }

  absl::Status Write(const MetadataBatch& batch, MetadataSync sync) override;
  absl::Status Scan(absl::string_view begin, absl::string_view end, const Visitor& visit) override;

  absl::Status Sync() override {
    const GatedCall call(&gate_);
    REPOTXN_RETURN_IF_ERROR(call.status());
    REPOTXN_RETURN_IF_ERROR(poison_->status());
    return Checked(db_->SyncWAL(), "sync");
  }

  absl::Status Close() override {
    const absl::Status synced = Sync();
    if (!gate_.Close()) return absl::FailedPreconditionError("metadata store is closed already");
    const absl::Status closed = FromRocksdb(db_->Close(), "close");
    return synced.ok() ? closed : synced;
  }

 private:
  Mutex write_mutex_{MutexRank::kMetadata};
  Gate gate_;
  // Poisons on failure, and then answers with the poison.
  absl::Status Checked(const rocksdb::Status& status, absl::string_view operation) {
    if (status.ok()) return absl::OkStatus();
    poison_->Set(FromRocksdb(status, operation));
    return poison_->status();
  }

  const std::unique_ptr<rocksdb::Env> env_;  // outlives db_
  const std::shared_ptr<Poison> poison_;
  const std::unique_ptr<rocksdb::DB> db_;
};

absl::Status RocksdbMetadataStore::Write(const MetadataBatch& batch, MetadataSync sync) {
  const GatedCall call(&gate_);
  REPOTXN_RETURN_IF_ERROR(call.status());
  // One writer at a time: the store above has one, and RocksDB's own grouping of writers would gain it nothing.
  const MutexLock write(&write_mutex_);
  REPOTXN_RETURN_IF_ERROR(poison_->status());
  rocksdb::WriteBatch edits;
  for (const MetadataBatch::Edit& edit : batch.edits()) {
    rocksdb::Status status;
    switch (edit.kind) {
      case MetadataBatch::Edit::Kind::kPut:
        status = edits.Put(edit.key, edit.value);
        break;
      case MetadataBatch::Edit::Kind::kDelete:
        status = edits.Delete(edit.key);
        break;
      case MetadataBatch::Edit::Kind::kDeleteRange:
        status = edits.DeleteRange(edit.key, edit.value);
        break;
    }
    // Nothing has been written yet: a batch past RocksDB's limits is no reason to poison.
    REPOTXN_RETURN_IF_ERROR(FromRocksdb(status, "build batch"));
  }
  rocksdb::WriteOptions options;
  options.sync = sync == MetadataSync::kSynced;
  return Checked(db_->Write(options, &edits), "write");
}

absl::Status RocksdbMetadataStore::Scan(absl::string_view begin, absl::string_view end,
                                        const Visitor& visit) {
  const GatedCall call(&gate_);
  REPOTXN_RETURN_IF_ERROR(call.status());
  rocksdb::ReadOptions options;
  const rocksdb::Slice bound = SliceOf(end);
  if (!end.empty()) options.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->Seek(SliceOf(begin)); it->Valid(); it->Next()) {
    if (!visit(ViewOf(it->key()), ViewOf(it->value()))) break;
  }
  return FromRocksdb(it->status(), "scan");
}

absl::Status MakeDurableDirectory(FileSystem* fs, const StorePath& directory) {
  if (directory.IsRoot()) return absl::OkStatus();
  const absl::Status made = fs->MakeDirectory(directory);
  if (!absl::IsAlreadyExists(made)) REPOTXN_RETURN_IF_ERROR(made);
  // Also when it was there: whoever made it may have died before this. RocksDB syncs what is in the
  // directory, not its name.
  return fs->SyncDirectory(directory.Parent());
}

}  // namespace

void MetadataBatch::Put(absl::string_view key, absl::string_view value) {
  edits_.push_back({Edit::Kind::kPut, std::string(key), std::string(value)});
}

void MetadataBatch::Delete(absl::string_view key) {
  edits_.push_back({Edit::Kind::kDelete, std::string(key), std::string()});
}

void MetadataBatch::DeleteRange(absl::string_view begin, absl::string_view end) {
  if (begin >= end) return;
  edits_.push_back({Edit::Kind::kDeleteRange, std::string(begin), std::string(end)});
}

absl::StatusOr<std::unique_ptr<MetadataStore>> MetadataStore::Open(FileSystem* fs,
                                                                   const StorePath& directory) {
  REPOTXN_RETURN_IF_ERROR(MakeDurableDirectory(fs, directory));
  auto poison = std::make_shared<Poison>();
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(
      NewRocksdbFileSystem(fs, [poison](const absl::Status& cause) { poison->Set(cause); }));
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::Open(OptionsFor(env.get(), poison), absl::StrCat("/", directory.text()), &db);
  REPOTXN_RETURN_IF_ERROR(FromRocksdb(opened, "open metadata store"));
  auto store = std::make_unique<RocksdbMetadataStore>(std::move(env), poison,
                                                      std::unique_ptr<rocksdb::DB>(db));
  // A failed sync that RocksDB passed over, or keeps for the first write, is the caller's now.
  REPOTXN_RETURN_IF_ERROR(poison->status());
  return store;
}

std::string PrefixEnd(absl::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

}  // namespace repotxn::storage
