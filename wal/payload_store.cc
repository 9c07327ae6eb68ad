#include "wal/payload_store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/checksum.h"
#include "storage/status_macros.h"

namespace repotxn::wal {
namespace {

using storage::StorePath;

constexpr size_t kCopyBytes = 256 << 10;
// Payload files have 0444: what is linked into a repository must not be writable.
constexpr uint32_t kPayloadPermissions = 0444;

absl::string_view ViewOf(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

StorePath DirectoryOf(const StorePath& root, const TransactionId& id) {
  const std::string hex = id.ToHex();
  return root / ViewOf(hex);
}

// Size and SHA-256 of a file by reading it; `keep` gets the bytes when it is not null.
absl::StatusOr<PayloadFile> Digest(storage::FileSystem& file_system, const StorePath& path,
                                   std::string* keep) {
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ReadableFile> file,
                           file_system.OpenForRead(path));
  storage::Sha256Stream sha256;
  std::string buffer(kCopyBytes, '\0');
  PayloadFile result;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const size_t bytes,
                             file->ReadAt(result.size, absl::Span<char>(&buffer[0], kCopyBytes)));
    if (bytes == 0) break;
    sha256.Update(absl::string_view(buffer.data(), bytes));
    if (keep != nullptr) keep->append(buffer.data(), bytes);
    result.size += static_cast<int64_t>(bytes);
  }
  result.sha256 = sha256.Finish();
  return result;
}

absl::Status Compare(const PayloadFile& found, const PayloadFile& expected) {
  if (found.size == expected.size && found.sha256 == expected.sha256) return absl::OkStatus();
  return absl::DataLossError("payload file has another size or digest than its entry says");
}

}  // namespace

StorePath PayloadPath(const StorePath& root, const TransactionId& id, uint32_t index) {
  const std::string name = absl::StrCat(index);
  return DirectoryOf(root, id) / ViewOf(name);
}

StorePath StagedPayload::Directory() const { return DirectoryOf(root_, id_); }

StorePath StagedPayload::path(const PayloadFile& file) const {
  return PayloadPath(root_, id_, file.index);
}

absl::Status StagedPayload::Reopen() {
  if (state_ == State::kSealed) state_ = State::kOpen;
  return state_ == State::kOpen ? absl::OkStatus()
                                : absl::FailedPreconditionError("payload is not open");
}

absl::StatusOr<PayloadFile> StagedPayload::AddBytes(absl::string_view content) {
  REPOTXN_RETURN_IF_ERROR(Reopen());
  PayloadFile file;
  file.index = static_cast<uint32_t>(files_.size());
  file.size = static_cast<int64_t>(content.size());
  file.sha256 = storage::Sha256(content);
  REPOTXN_ASSIGN_OR_RETURN(
      const std::unique_ptr<storage::WritableFile> out,
      file_system_->OpenForWrite(path(file), storage::OpenMode::kCreateTruncate,
                                 kPayloadPermissions));
  REPOTXN_RETURN_IF_ERROR(out->Append(content));
  REPOTXN_RETURN_IF_ERROR(out->Close());
  files_.push_back(file);
  return file;
}

absl::StatusOr<PayloadFile> StagedPayload::AddLinked(const StorePath& source) {
  REPOTXN_RETURN_IF_ERROR(Reopen());
  PayloadFile file;
  file.index = static_cast<uint32_t>(files_.size());
  const StorePath target = PayloadPath(root_, id_, file.index);
  REPOTXN_RETURN_IF_ERROR(file_system_->Link(source, target));
  absl::StatusOr<PayloadFile> digest = Digest(*file_system_, target, nullptr);
  if (!digest.ok()) {
    // The name must be free again for the next file.
    IgnoreBecause(file_system_->Remove(target), "the error of reading is the one to report");
    return digest.status();
  }
  file.size = digest->size;
  file.sha256 = std::move(digest->sha256);
  files_.push_back(file);
  return file;
}

absl::Status StagedPayload::SealFiles() {
  for (; synced_files_ < files_.size(); ++synced_files_) {
    REPOTXN_RETURN_IF_ERROR(file_system_->SyncFile(path(files_[synced_files_])));
  }
  REPOTXN_RETURN_IF_ERROR(file_system_->SyncDirectory(Directory()));
  return file_system_->SyncDirectory(root_);
}

absl::Status StagedPayload::Seal() {
  if (state_ == State::kSealed) return absl::OkStatus();
  if (state_ != State::kOpen) return absl::FailedPreconditionError("payload is not open");
  const absl::Status sealed = files_.empty() ? absl::OkStatus() : SealFiles();
  state_ = sealed.ok() ? State::kSealed : State::kFailed;
  return sealed;
}

absl::Status StagedPayload::Discard() {
  if (state_ == State::kDiscarded) return absl::OkStatus();
  state_ = State::kDiscarded;
  return storage::RemoveTree(*file_system_, Directory());
}

absl::Status PayloadStore::Initialize() {
  REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*file_system_, root_));
  return file_system_->SyncDirectory(root_.Parent());
}

absl::StatusOr<std::unique_ptr<StagedPayload>> PayloadStore::Create(const TransactionId& id) {
  REPOTXN_RETURN_IF_ERROR(file_system_->MakeDirectory(DirectoryOf(root_, id)));
  return std::unique_ptr<StagedPayload>(new StagedPayload(file_system_, root_, id));
}

absl::StatusOr<std::vector<TransactionId>> PayloadStore::List() {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries,
                           file_system_->List(root_));
  std::vector<TransactionId> ids;
  for (const storage::DirectoryEntry& entry : entries) {
    if (entry.kind != storage::FileKind::kDirectory) continue;
    const absl::StatusOr<TransactionId> id = TransactionId::FromHex(ViewOf(entry.name));
    if (id.ok() && id->ToHex() == entry.name) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

absl::Status PayloadStore::Remove(const TransactionId& id) {
  return storage::RemoveTree(*file_system_, DirectoryOf(root_, id));
}

absl::StatusOr<std::string> PayloadStore::Read(const TransactionId& id, const PayloadFile& file) {
  const StorePath path = PayloadPath(root_, id, file.index);
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, file_system_->Stat(path));
  if (info.size != file.size) return Compare(PayloadFile{}, file);
  std::string bytes;
  bytes.reserve(static_cast<size_t>(info.size));
  REPOTXN_ASSIGN_OR_RETURN(const PayloadFile found, Digest(*file_system_, path, &bytes));
  REPOTXN_RETURN_IF_ERROR(Compare(found, file));
  return bytes;
}

absl::Status PayloadStore::Verify(const TransactionId& id, const PayloadFile& file) {
  REPOTXN_ASSIGN_OR_RETURN(const PayloadFile found,
                           Digest(*file_system_, PayloadPath(root_, id, file.index), nullptr));
  return Compare(found, file);
}

}  // namespace repotxn::wal
