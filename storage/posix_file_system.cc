#include "storage/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/check.h"
#include "storage/descriptor.h"
#include "storage/critical_section.h"
#include "storage/errno_status.h"
#include "storage/lock_holders.h"
#include "storage/posix_file.h"
#include "storage/status_macros.h"

namespace repotxn::storage {
namespace {

// The kernel asks for another try when a rename raced with its walk; a walk that always races is an
// error.
constexpr int kOpenTriesMax = 100;

int OpenBeneath(int root, const char* path, uint64_t flags, uint64_t mode) {
  struct open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0;; ++tries) {
    const long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
    if (fd >= 0) return static_cast<int>(fd);
    const bool again = errno == EINTR || errno == EAGAIN;
    if (!again || tries >= kOpenTriesMax) return -1;
  }
}

FileKind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kRegular;
  if (S_ISDIR(mode)) return FileKind::kDirectory;
  if (S_ISLNK(mode)) return FileKind::kSymlink;
  return FileKind::kOther;
}

FileInfo InfoOf(const struct stat& st) {
  FileInfo info;
  info.kind = KindOf(st.st_mode);
  info.size = st.st_size;
  info.mode = st.st_mode & 07777;
  info.link_count = static_cast<int64_t>(st.st_nlink);
  info.inode = st.st_ino;
  info.modified = absl::TimeFromTimespec(st.st_mtim);
  return info;
}

// The directory that holds a path, and the last component for the *at calls. The root itself is "."
// of the root.
struct Place {
  OwnedDescriptor owned;  // not open when the directory is the root
  int directory = -1;
  std::string name;
};

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(OwnedDescriptor fd) : fd_(std::move(fd)) {}
  int descriptor() const override { return fd_.get(); }

 private:
  const OwnedDescriptor fd_;
};

class PosixFileSystem final : public FileSystem {
 public:
  PosixFileSystem(OwnedDescriptor root, std::string absolute_root)
      : root_(std::move(root)), absolute_root_(std::move(absolute_root)) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(const StorePath& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenPastCache(const StorePath& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const StorePath& path, OpenMode mode,
                                                             uint32_t permissions) override;
  absl::StatusOr<FileInfo> Stat(const StorePath& path) override;
  absl::StatusOr<std::vector<DirectoryEntry>> List(const StorePath& path) override;
  absl::Status MakeDirectory(const StorePath& path, uint32_t permissions) override;
  absl::Status Remove(const StorePath& path) override;
  absl::Status RemoveDirectory(const StorePath& path) override;
  absl::Status Rename(const StorePath& from, const StorePath& to) override;
  absl::Status Link(const StorePath& from, const StorePath& to) override;
  absl::Status Symlink(absl::string_view target, const StorePath& path) override;
  absl::StatusOr<std::string> ReadLink(const StorePath& path) override;
  absl::Status SetModified(const StorePath& path, absl::Time time) override;
  absl::Status SetPermissions(const StorePath& path, uint32_t permissions) override;
  absl::Status SyncFile(const StorePath& path) override;
  absl::Status SyncDirectory(const StorePath& path) override;
  absl::Status SyncAll() override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const StorePath& path,
                                                 absl::string_view holder_note) override;
  absl::StatusOr<int64_t> FreeBytes() override;
  absl::StatusOr<std::string> AbsolutePath(const StorePath& path) override;

 private:
  absl::StatusOr<Place> Locate(const StorePath& path, absl::string_view operation) const;
  absl::StatusOr<OwnedDescriptor> Open(const StorePath& path, int flags,
                                       absl::string_view operation) const;
  // Open(), refusing what is no regular file. Never blocks on a FIFO.
  absl::StatusOr<OwnedDescriptor> OpenRegular(const StorePath& path, int flags,
                                              absl::string_view operation) const;
  absl::StatusOr<OwnedDescriptor> Create(const StorePath& path, uint32_t permissions) const;
  absl::StatusOr<OwnedDescriptor> OpenOrCreate(const StorePath& path, OpenMode mode,
                                               uint32_t permissions) const;
  absl::Status RemoveAt(const StorePath& path, int flags, absl::string_view operation) const;

  const OwnedDescriptor root_;
  // For people and child processes only; no call of ours goes through it.
  const std::string absolute_root_;
};

absl::StatusOr<Place> PosixFileSystem::Locate(const StorePath& path,
                                              absl::string_view operation) const {
  REPOTXN_OUTSIDE_CRITICAL_SECTION();
  Place place;
  place.directory = root_.get();
  place.name = path.IsRoot() ? "." : std::string(path.Name().data(), path.Name().size());
  const StorePath parent = path.Parent();
  if (parent.IsRoot()) return place;
  place.owned.Reset(OpenBeneath(root_.get(), parent.text().c_str(), O_PATH | O_DIRECTORY, 0));
  if (!place.owned.is_open()) return ErrnoStatus(errno, operation, path);
  place.directory = place.owned.get();
  return place;
}

absl::StatusOr<OwnedDescriptor> PosixFileSystem::Open(const StorePath& path, int flags,
                                                      absl::string_view operation) const {
  REPOTXN_OUTSIDE_CRITICAL_SECTION();
  const char* const text = path.IsRoot() ? "." : path.text().c_str();
  // A symlink as the last component is refused with ELOOP by RESOLVE_NO_SYMLINKS; O_NOFOLLOW would
  // open it (O_PATH) or call it no directory.
  OwnedDescriptor fd(OpenBeneath(root_.get(), text, static_cast<uint64_t>(flags), 0));
  if (!fd.is_open()) return ErrnoStatus(errno, operation, path);
  return fd;
}

absl::StatusOr<OwnedDescriptor> PosixFileSystem::OpenRegular(const StorePath& path, int flags,
                                                             absl::string_view operation) const {
  REPOTXN_ASSIGN_OR_RETURN(OwnedDescriptor fd, Open(path, flags | O_NONBLOCK, operation));
  struct stat st = {};
  if (fstat(fd.get(), &st) != 0) return ErrnoStatus(errno, operation, path);
  if (S_ISDIR(st.st_mode)) return ErrnoStatus(EISDIR, operation, path);
  if (!S_ISREG(st.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(operation, ": not a regular file"));
  }
  return fd;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> PosixFileSystem::OpenForRead(const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(OwnedDescriptor fd, OpenRegular(path, O_RDONLY, "open"));
  return NewPosixReadableFile(std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> PosixFileSystem::OpenPastCache(
    const StorePath& path) {
  absl::StatusOr<OwnedDescriptor> direct = OpenRegular(path, O_RDONLY | O_DIRECT, "open");
  if (direct.ok()) return NewDirectReadableFile(*std::move(direct), path);
  if (ErrnoOf(direct.status()) != EINVAL) return direct.status();
  // No direct reads here. A sync first would make dropping the cache complete, but a sync after a
  // failed one reports success for pages that never reached the disk; so drop what is clean and
  // read.
  REPOTXN_ASSIGN_OR_RETURN(OwnedDescriptor fd, OpenRegular(path, O_RDONLY, "open"));
  const int error = posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (error != 0) return ErrnoStatus(error, "drop cache", path);
  return NewPosixReadableFile(std::move(fd), path);
}

absl::StatusOr<OwnedDescriptor> PosixFileSystem::Create(const StorePath& path,
                                                        uint32_t permissions) const {
  constexpr uint64_t kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
  OwnedDescriptor fd(OpenBeneath(root_.get(), path.text().c_str(), kFlags, permissions & 07777));
  if (!fd.is_open()) return ErrnoStatus(errno, "create", path);
  // The process's umask is the embedder's business, not ours.
  if (fchmod(fd.get(), permissions & 07777) != 0) return ErrnoStatus(errno, "create", path);
  return fd;
}

absl::StatusOr<OwnedDescriptor> PosixFileSystem::OpenOrCreate(const StorePath& path, OpenMode mode,
                                                              uint32_t permissions) const {
  if (mode == OpenMode::kCreateNew) return Create(path, permissions);
  const int flags = mode == OpenMode::kCreateTruncate ? O_RDWR | O_TRUNC : O_RDWR;
  // Whoever removes and makes the file in turn can make both halves fail; give up in the end.
  for (int tries = 0;; ++tries) {
    absl::StatusOr<OwnedDescriptor> fd = OpenRegular(path, flags, "open");
    if (mode == OpenMode::kExisting || !absl::IsNotFound(fd.status())) return fd;
    fd = Create(path, permissions);
    if (!absl::IsAlreadyExists(fd.status()) || tries >= kOpenTriesMax) return fd;
  }
}

absl::StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::OpenForWrite(const StorePath& path,
                                                                            OpenMode mode,
                                                                            uint32_t permissions) {
  if (path.IsRoot()) return ErrnoStatus(EISDIR, "open", path);
  REPOTXN_ASSIGN_OR_RETURN(OwnedDescriptor fd, OpenOrCreate(path, mode, permissions));
  return NewPosixWritableFile(std::move(fd), path);
}

absl::StatusOr<FileInfo> PosixFileSystem::Stat(const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const Place place, Locate(path, "stat"));
  struct stat st = {};
  if (fstatat(place.directory, place.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoStatus(errno, "stat", path);
  }
  return InfoOf(st);
}

// Kind from what readdir told, or from a stat where the file system does not tell. False when the
// entry is gone.
absl::StatusOr<bool> KindOfEntry(int directory, const struct dirent& entry, FileKind* kind) {
  if (entry.d_type != DT_UNKNOWN) {
    *kind = KindOf(static_cast<mode_t>(DTTOIF(entry.d_type)));
    return true;
  }
  struct stat st = {};
  if (fstatat(directory, entry.d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
    *kind = KindOf(st.st_mode);
    return true;
  }
  if (errno == ENOENT) return false;
  return ErrnoStatus(errno, "list");
}

absl::StatusOr<std::vector<DirectoryEntry>> PosixFileSystem::List(const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(OwnedDescriptor fd, Open(path, O_RDONLY | O_DIRECTORY, "list"));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd.get()), closedir);
  if (stream == nullptr) return ErrnoStatus(errno, "list", path);
  fd.Release();  // The stream's now.
  std::vector<DirectoryEntry> entries;
  while (true) {
    errno = 0;
    const struct dirent* const entry = readdir(stream.get());
    if (entry == nullptr) break;
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    DirectoryEntry found;
    found.name = entry->d_name;
    REPOTXN_ASSIGN_OR_RETURN(const bool there,
                             KindOfEntry(dirfd(stream.get()), *entry, &found.kind));
    if (there) entries.push_back(std::move(found));
  }
  if (errno != 0) return ErrnoStatus(errno, "list", path);
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

absl::Status PosixFileSystem::MakeDirectory(const StorePath& path, uint32_t permissions) {
  REPOTXN_ASSIGN_OR_RETURN(const Place place, Locate(path, "mkdir"));
  if (mkdirat(place.directory, place.name.c_str(), permissions & 07777) != 0) {
    return ErrnoStatus(errno, "mkdir", path);
  }
  return SetPermissions(path, permissions);
}

absl::Status PosixFileSystem::RemoveAt(const StorePath& path, int flags,
                                       absl::string_view operation) const {
  if (path.IsRoot()) return ErrnoStatus(EBUSY, operation, path);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, Locate(path, operation));
  if (unlinkat(place.directory, place.name.c_str(), flags) != 0) {
    return ErrnoStatus(errno, operation, path);
  }
  return absl::OkStatus();
}

absl::Status PosixFileSystem::Remove(const StorePath& path) { return RemoveAt(path, 0, "remove"); }

absl::Status PosixFileSystem::RemoveDirectory(const StorePath& path) {
  return RemoveAt(path, AT_REMOVEDIR, "rmdir");
}

absl::Status PosixFileSystem::Rename(const StorePath& from, const StorePath& to) {
  if (from.IsRoot() || to.IsRoot()) return ErrnoStatus(EBUSY, "rename", to);
  REPOTXN_ASSIGN_OR_RETURN(const Place source, Locate(from, "rename"));
  REPOTXN_ASSIGN_OR_RETURN(const Place target, Locate(to, "rename"));
  if (renameat(source.directory, source.name.c_str(), target.directory, target.name.c_str()) != 0) {
    return ErrnoStatus(errno, "rename", to);
  }
  return absl::OkStatus();
}

absl::Status PosixFileSystem::Link(const StorePath& from, const StorePath& to) {
  REPOTXN_ASSIGN_OR_RETURN(const Place source, Locate(from, "link"));
  REPOTXN_ASSIGN_OR_RETURN(const Place target, Locate(to, "link"));
  // Without AT_SYMLINK_FOLLOW a symlink at the source is linked itself.
  if (linkat(source.directory, source.name.c_str(), target.directory, target.name.c_str(), 0) !=
      0) {
    return ErrnoStatus(errno, "link", to);
  }
  return absl::OkStatus();
}

absl::Status PosixFileSystem::Symlink(absl::string_view target, const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const Place place, Locate(path, "symlink"));
  if (symlinkat(std::string(target).c_str(), place.directory, place.name.c_str()) != 0) {
    return ErrnoStatus(errno, "symlink", path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PosixFileSystem::ReadLink(const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const Place place, Locate(path, "readlink"));
  std::string target(PATH_MAX, '\0');
  const ssize_t size =
      readlinkat(place.directory, place.name.c_str(), target.data(), target.size());
  if (size < 0) return ErrnoStatus(errno, "readlink", path);
  target.resize(static_cast<size_t>(size));
  return target;
}

absl::Status PosixFileSystem::SetModified(const StorePath& path, absl::Time time) {
  REPOTXN_ASSIGN_OR_RETURN(const Place place, Locate(path, "set time"));
  const struct timespec times[2] = {{0, UTIME_OMIT}, absl::ToTimespec(time)};
  if (utimensat(place.directory, place.name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoStatus(errno, "set time", path);
  }
  return absl::OkStatus();
}

absl::Status PosixFileSystem::SetPermissions(const StorePath& path, uint32_t permissions) {
  // The kernel has no chmod that refuses symlinks; a descriptor cannot be one. Through /proc, since
  // an O_PATH descriptor is all that a file without read permission allows.
  REPOTXN_ASSIGN_OR_RETURN(const OwnedDescriptor fd, Open(path, O_PATH, "chmod"));
  const std::string self = absl::StrCat("/proc/self/fd/", fd.get());
  if (chmod(self.c_str(), permissions & 07777) != 0) return ErrnoStatus(errno, "chmod", path);
  return absl::OkStatus();
}

absl::Status PosixFileSystem::SyncFile(const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const OwnedDescriptor fd, OpenRegular(path, O_RDONLY, "sync"));
  // Not fdatasync: permissions and times that were set by path are to survive too.
  if (fsync(fd.get()) != 0) return ErrnoStatus(errno, "sync", path);
  return absl::OkStatus();
}

absl::Status PosixFileSystem::SyncDirectory(const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const OwnedDescriptor fd,
                           Open(path, O_RDONLY | O_DIRECTORY, "sync directory"));
  if (fsync(fd.get()) != 0) return ErrnoStatus(errno, "sync directory", path);
  return absl::OkStatus();
}

absl::Status PosixFileSystem::SyncAll() {
  // Writeback errors are reported to descriptors that were open when they happened: the root's has
  // been since Open.
  if (syncfs(root_.get()) != 0) return ErrnoStatus(errno, "sync all");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> PosixFileSystem::Lock(const StorePath& path,
                                                                absl::string_view holder_note) {
  REPOTXN_ASSIGN_OR_RETURN(OwnedDescriptor fd, OpenOrCreate(path, OpenMode::kCreateOrKeep, 0644));
  // flock belongs to this opening of the file, not to the process: a second opening in this process
  // is refused like any other, closing it leaves the first one's lock, and children that inherit
  // the descriptor share it.
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return absl::UnavailableError(absl::StrCat("locked by process ",
                                                 absl::StrJoin(OtherHoldersOf(fd.get()), ", ")));
    }
    if (errno != EINTR) return ErrnoStatus(errno, "lock", path);
  }
  REPOTXN_ASSIGN_OR_RETURN(OwnedDescriptor note_fd, OpenRegular(path, O_RDWR | O_TRUNC, "lock"));
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> note,
                           NewPosixWritableFile(std::move(note_fd), path));
  REPOTXN_RETURN_IF_ERROR(note->Append(holder_note));
  REPOTXN_RETURN_IF_ERROR(note->Close());
  return std::make_unique<PosixFileLock>(std::move(fd));
}

absl::StatusOr<int64_t> PosixFileSystem::FreeBytes() {
  struct statvfs st = {};
  while (fstatvfs(root_.get(), &st) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "free space");
  }
  return static_cast<int64_t>(st.f_bavail * st.f_frsize);
}

absl::StatusOr<std::string> PosixFileSystem::AbsolutePath(const StorePath& path) {
  if (path.IsRoot()) return absolute_root_;
  return absl::StrCat(absolute_root_ == "/" ? "" : absolute_root_, "/", path.text());
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> OpenPosixFileSystem(absl::string_view root) {
  const std::string given(root);
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(given.c_str(), nullptr), free);
  if (resolved == nullptr) return ErrnoStatus(errno, "open root");
  // A real descriptor, not O_PATH: syncfs and fsync need one.
  OwnedDescriptor fd(open(resolved.get(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus(errno, "open root");
  const OwnedDescriptor probe(OpenBeneath(fd.get(), ".", O_PATH, 0));
  if (!probe.is_open() && errno == ENOSYS) {
    return absl::UnimplementedError("the kernel has no openat2");
  }
  return std::make_unique<PosixFileSystem>(std::move(fd), resolved.get());
}

}  // namespace repotxn::storage
