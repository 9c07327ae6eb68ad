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

absl::Status IdFile::Append(const ObjectId& oid, absl::string_view name) {
  absl::StrAppend(&buffer_, oid.ToHex(), name.empty() ? "" : " ", name, "\n");
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
  const size_t hex_bytes = 2 * ObjectIdBytes(format);
  std::string buffer;
  size_t begin = 0;
  for (;;) {
    size_t end = buffer.find('\n', begin);
    while (end == std::string::npos) {
      buffer.erase(0, begin);
      begin = 0;
      const size_t before = buffer.size();
      buffer.resize(before + kBufferBytes);
      REPOTXN_ASSIGN_OR_RETURN(const size_t got, lines(absl::MakeSpan(&buffer[before], kBufferBytes)));
      buffer.resize(before + got);
      if (got == 0) return absl::OkStatus();
      end = buffer.find('\n', before);
    }
    REPOTXN_ASSIGN_OR_RETURN(const ObjectId oid,
                             ObjectId::FromHex(absl::string_view(buffer).substr(begin, hex_bytes), format));
    REPOTXN_RETURN_IF_ERROR(visit(oid));
    begin = end + 1;
  }
}

}  // namespace repotxn::objects
