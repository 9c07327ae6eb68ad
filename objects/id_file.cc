#include "objects/id_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

}  // namespace

IdFile::IdFile(storage::FileSystem* fs, storage::StorePath path)
    : fs_(fs), path_(std::move(path)) {}

IdFile::~IdFile() {
  file_.reset();
  // Staging is wiped at open: a file that cannot be removed now goes then.
  static_cast<void>(fs_->Remove(path_).ok());
}

absl::StatusOr<std::unique_ptr<IdFile>> IdFile::Create(storage::FileSystem* fs,
                                                       const storage::StorePath& path) {
  std::unique_ptr<IdFile> file(new IdFile(fs, path));
  REPOTXN_ASSIGN_OR_RETURN(file->file_, fs->OpenForWrite(path, storage::OpenMode::kCreateTruncate));
  return file;
}

absl::Status IdFile::Append(const ObjectId& oid) {
  absl::StrAppend(&buffer_, oid.ToHex(), "\n");
  ++count_;
  if (buffer_.size() < kBufferBytes) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(file_->Append(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status IdFile::Finish() {
  REPOTXN_RETURN_IF_ERROR(file_->Append(buffer_));
  buffer_.clear();
  return file_->Close();
}

absl::StatusOr<InputSource> IdFile::Lines() const {
  REPOTXN_ASSIGN_OR_RETURN(std::shared_ptr<storage::ReadableFile> file, fs_->OpenForRead(path_));
  const auto at = std::make_shared<int64_t>(0);
  return [file, at](absl::Span<char> out) -> absl::StatusOr<size_t> {
    REPOTXN_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(*at, out));
    *at += static_cast<int64_t>(got);
    return got;
  };
}

absl::Status IdFile::ForEach(ObjectFormat format,
                             const std::function<absl::Status(const ObjectId&)>& visit) const {
  REPOTXN_ASSIGN_OR_RETURN(const InputSource lines, Lines());
  const size_t line_bytes = 2 * ObjectIdBytes(format) + 1;
  std::string line(line_bytes, '\0');
  for (;;) {
    // Of a regular file, less is read only at its end.
    REPOTXN_ASSIGN_OR_RETURN(const size_t got, lines(absl::MakeSpan(&line[0], line_bytes)));
    if (got == 0) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const ObjectId oid,
                             ObjectId::FromHex(absl::string_view(line).substr(0, got - 1), format));
    REPOTXN_RETURN_IF_ERROR(visit(oid));
  }
}

}  // namespace repotxn::objects
