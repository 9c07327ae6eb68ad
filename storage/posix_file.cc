#include "storage/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "storage/check.h"
#include "storage/errno_status.h"
#include "storage/status_macros.h"

namespace repotxn::storage {
namespace {

// Alignment that every block device of today accepts for direct reads.
constexpr size_t kDirectAlignment = 4096;
constexpr size_t kDirectBufferBytes = 256 << 10;
static_assert(kDirectBufferBytes % kDirectAlignment == 0);

absl::StatusOr<size_t> ReadAll(int fd, int64_t offset, absl::Span<char> out,
                               const StorePath& path) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        pread(fd, out.data() + done, out.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read", path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

absl::Status WriteAll(int fd, int64_t offset, absl::string_view data, const StorePath& path) {
  while (!data.empty()) {
    const ssize_t put = pwrite(fd, data.data(), data.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return ErrnoStatus(errno, "write", path);
    // A write of nothing for something would loop for ever.
    if (put == 0) return ErrnoStatus(ENOSPC, "write", path);
    data.remove_prefix(static_cast<size_t>(put));
    offset += put;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SizeOf(int fd, const StorePath& path) {
  struct stat st = {};
  if (fstat(fd, &st) != 0) return ErrnoStatus(errno, "stat", path);
  return static_cast<int64_t>(st.st_size);
}

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(OwnedDescriptor fd, StorePath path)
      : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> out) const override {
    return ReadAll(fd_.get(), offset, out, path_);
  }
  absl::StatusOr<int64_t> Size() const override { return SizeOf(fd_.get(), path_); }

 protected:
  const OwnedDescriptor fd_;
  const StorePath path_;
};

class DirectReadableFile final : public PosixReadableFile {
 public:
  using PosixReadableFile::PosixReadableFile;

  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> out) const override {
    const std::unique_ptr<char, void (*)(void*)> buffer(
        static_cast<char*>(std::aligned_alloc(kDirectAlignment, kDirectBufferBytes)), std::free);
    if (buffer == nullptr) return ErrnoStatus(ENOMEM, "read", path_);
    size_t done = 0;
    while (done < out.size()) {
      const int64_t at = offset + static_cast<int64_t>(done);
      const size_t skip = static_cast<size_t>(at) % kDirectAlignment;
      REPOTXN_ASSIGN_OR_RETURN(const size_t got,
                               ReadBlocks(at - static_cast<int64_t>(skip),
                                          absl::MakeSpan(buffer.get(), kDirectBufferBytes)));
      if (got <= skip) break;
      const size_t taken = std::min(got - skip, out.size() - done);
      std::memcpy(out.data() + done, buffer.get() + skip, taken);
      done += taken;
      if (got < kDirectBufferBytes) break;  // The end of the file.
    }
    return done;
  }

 private:
  // Reads whole blocks from an aligned offset. A short result is the end of the file: a direct read
  // that went on from there would not be aligned.
  absl::StatusOr<size_t> ReadBlocks(int64_t offset, absl::Span<char> out) const {
    while (true) {
      const ssize_t got = pread(fd_.get(), out.data(), out.size(), offset);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno == EINTR) continue;
      if (errno != EINVAL) return ErrnoStatus(errno, "read", path_);
      // Some file systems take the flag and refuse the read.
      const int flags = fcntl(fd_.get(), F_GETFL);
      if (flags < 0 || (flags & O_DIRECT) == 0) return ErrnoStatus(EINVAL, "read", path_);
      if (fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT) != 0) {
        return ErrnoStatus(errno, "read", path_);
      }
      const int error = posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
      if (error != 0) return ErrnoStatus(error, "drop cache", path_);
    }
  }
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(OwnedDescriptor fd, StorePath path, int64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), end_(size) {}

  absl::Status Append(absl::string_view data) override { return WriteAt(end_, data); }

  absl::Status WriteAt(int64_t offset, absl::string_view data) override {
    if (!fd_.is_open()) return ErrnoStatus(EBADF, "write", path_);
    absl::Status status = WriteAll(fd_.get(), offset, data, path_);
    if (status.ok()) end_ = std::max(end_, offset + static_cast<int64_t>(data.size()));
    return status;
  }

  absl::Status Truncate(int64_t size) override {
    while (ftruncate(fd_.get(), size) != 0) {
      if (errno != EINTR) return ErrnoStatus(errno, "truncate", path_);
    }
    end_ = size;
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Size() const override { return SizeOf(fd_.get(), path_); }

  absl::Status Sync() override {
    // Not repeated on EINTR: whether a second call still sees the first one's errors is not
    // promised.
    if (fdatasync(fd_.get()) != 0) return ErrnoStatus(errno, "sync", path_);
    return absl::OkStatus();
  }

  absl::Status Close() override {
    // The descriptor is gone whatever close says; EINTR is no failure of the data.
    if (close(fd_.Release()) != 0 && errno != EINTR) return ErrnoStatus(errno, "close", path_);
    return absl::OkStatus();
  }

 private:
  OwnedDescriptor fd_;
  const StorePath path_;
  int64_t end_;  // where Append() goes
};

}  // namespace

std::unique_ptr<ReadableFile> NewPosixReadableFile(OwnedDescriptor fd, const StorePath& path) {
  return std::make_unique<PosixReadableFile>(std::move(fd), path);
}

std::unique_ptr<ReadableFile> NewDirectReadableFile(OwnedDescriptor fd, const StorePath& path) {
  return std::make_unique<DirectReadableFile>(std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<WritableFile>> NewPosixWritableFile(OwnedDescriptor fd,
                                                                   const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, SizeOf(fd.get(), path));
  return std::make_unique<PosixWritableFile>(std::move(fd), path, size);
}

}  // namespace repotxn::storage
