// The least that a durable log can cost: records appended to a zero-filled file, with group commit.
//
// Callers that arrive while a sync is running form the next group; one of them writes and syncs for
// all. A group is padded to 4 KiB, so that no sync rewrites a page that another wrote. No checksums,
// no recovery, no segments: at the end of the file it begins anew, so that neither blocks nor size
// ever change under fdatasync. What a real log costs beside it is the price of being one.
//
// Thread-safe.
#ifndef REPOTXN_BENCH_RAW_LOG_H_
#define REPOTXN_BENCH_RAW_LOG_H_

#include <fcntl.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace repotxn::bench {

class RawLog {
 public:
  static constexpr size_t kBlock = 4096;
  static constexpr int64_t kFileBytes = 64 << 20;

  // Makes and zero-fills the file. Null when the machine refuses.
  static std::unique_ptr<RawLog> Create(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return nullptr;
    std::unique_ptr<RawLog> log(new RawLog(fd));
    const std::string zeros(1 << 20, '\0');
    for (int64_t at = 0; at < kFileBytes; at += static_cast<int64_t>(zeros.size())) {
      if (!log->WriteAt(zeros, at)) return nullptr;
    }
    return fsync(fd) == 0 ? std::move(log) : nullptr;
  }
  ~RawLog() { close(fd_); }
  RawLog(const RawLog&) = delete;
  RawLog& operator=(const RawLog&) = delete;

  // Returns when `record` is durable; false after a failed write or sync, and ever after.
  bool Append(const std::string& record) {
    std::unique_lock<std::mutex> lock(mutex_);
    pending_ += record;
    const uint64_t mine = ++appended_;
    while (durable_ < mine && !has_failed_) {
      if (is_syncing_) {
        changed_.wait(lock);
      } else {
        SyncGroup(lock);
      }
    }
    return !has_failed_;
  }
  uint64_t syncs() const { return syncs_; }

 private:
  explicit RawLog(int fd) : fd_(fd) {}

  // Called by the leader, with the mutex held; let go of during write and sync.
  void SyncGroup(std::unique_lock<std::mutex>& lock) {
    is_syncing_ = true;
    group_.swap(pending_);
    pending_.clear();
    const uint64_t last = appended_;
    lock.unlock();
    group_.resize((group_.size() + kBlock - 1) / kBlock * kBlock, '\0');
    if (offset_ + static_cast<int64_t>(group_.size()) > kFileBytes) offset_ = 0;
    const bool is_durable = WriteAt(group_, offset_) && fdatasync(fd_) == 0;
    offset_ += static_cast<int64_t>(group_.size());
    lock.lock();
    ++syncs_;
    is_syncing_ = false;
    has_failed_ = has_failed_ || !is_durable;
    durable_ = last;
    changed_.notify_all();
  }
  bool WriteAt(const std::string& bytes, int64_t at) {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n =
          pwrite(fd_, bytes.data() + done, bytes.size() - done, at + static_cast<int64_t>(done));
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

  const int fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::string pending_;
  uint64_t appended_ = 0;
  uint64_t durable_ = 0;
  uint64_t syncs_ = 0;
  bool is_syncing_ = false;
  bool has_failed_ = false;
  // The leader's.
  std::string group_;
  int64_t offset_ = 0;
};

}  // namespace repotxn::bench

#endif  // REPOTXN_BENCH_RAW_LOG_H_
