#include "objects/object_links.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "objects/error_detail.h"
#include "objects/git_stream.h"
#include "objects/object_reader.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr int kErrorLinesMax = 5;
constexpr int64_t kShallowBytesMax = 32 << 20;
constexpr uint32_t kModeTypeMask = 0170000;
constexpr uint32_t kModeGitlink = 0160000;

absl::StatusOr<std::vector<ObjectId>> CommitLinks(absl::string_view content, ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(std::vector<ObjectId> links, ParseCommitParents(content, format));
  // ParseCommitParents has proved the first line.
  constexpr size_t kTreeKeyword = 5;
  REPOTXN_ASSIGN_OR_RETURN(
      const ObjectId tree,
      ObjectId::FromHex(content.substr(kTreeKeyword, 2 * ObjectIdBytes(format)), format));
  links.insert(links.begin(), tree);
  return links;
}

// Mode digits of a tree entry. Old writers padded them with zeros.
bool ParseMode(absl::string_view digits, uint32_t* mode) {
  if (digits.empty() || digits.size() > 10) return false;
  *mode = 0;
  for (const char c : digits) {
    if (c < '0' || c > '7') return false;
    *mode = *mode * 8 + static_cast<uint32_t>(c - '0');
  }
  return true;
}

absl::StatusOr<std::vector<ObjectId>> TreeLinks(absl::string_view content, ObjectFormat format) {
  const absl::Status bad = absl::DataLossError("tree is malformed");
  const size_t id_bytes = ObjectIdBytes(format);
  std::vector<ObjectId> links;
  while (!content.empty()) {
    const size_t blank = content.find(' ');
    uint32_t mode = 0;
    if (blank == absl::string_view::npos || !ParseMode(content.substr(0, blank), &mode)) return bad;
    const size_t nul = content.find('\0', blank);
    if (nul == absl::string_view::npos || content.size() - nul <= id_bytes) return bad;
    if ((mode & kModeTypeMask) != kModeGitlink) {
      REPOTXN_ASSIGN_OR_RETURN(const ObjectId oid,
                               ObjectId::FromBytes(content.substr(nul + 1, id_bytes)));
      links.push_back(oid);
    }
    content.remove_prefix(nul + 1 + id_bytes);
  }
  return links;
}

absl::Status Unreadable(const GitResult& result, absl::string_view oid) {
  absl::Status status = absl::DataLossError("an object cannot be read");
  if (result.exit_code > 128) {
    status = absl::UnavailableError("a Git child was ended by a signal");
  }
  if (!oid.empty()) status = WithDetail(status, "oid", oid);
  return WithDetail(status, "stderr", SanitisedErrors(result.errors, kErrorLinesMax, ""));
}

// One header line of cat-file: "<oid> <type> <size>", or "<oid> missing".
struct Header {
  ObjectId oid;
  ObjectType type = ObjectType::kBlob;
  int64_t size = 0;
};
absl::StatusOr<Header> ParseHeader(absl::string_view line, ObjectFormat format) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  Header header;
  REPOTXN_ASSIGN_OR_RETURN(header.oid, ObjectId::FromHex(words[0], format));
  if (words.size() == 2 && words[1] == "missing") {
    return WithDetail(absl::DataLossError("an object is missing"), "oid", words[0]);
  }
  if (words.size() != 3 || !absl::SimpleAtoi(words[2], &header.size) || header.size < 0) {
    return absl::InternalError("answer of cat-file is malformed");
  }
  REPOTXN_ASSIGN_OR_RETURN(header.type, ParseObjectType(words[1]));
  return header;
}

GitCommand CatFile(const LinkScan& scan, const std::string& batch) {
  GitCommand command;
  command.repository = scan.repository;
  command.arguments = {"cat-file", batch, "--buffer"};
  command.is_check = true;
  command.lock_fd = scan.lock_fd;
  command.program = scan.program;
  return command;
}

// Ids of what is no blob, as hex lines, from the child that tells types.
class LinkingIds {
 public:
  LinkingIds(std::unique_ptr<GitStream> types, ObjectFormat format)
      : types_(std::move(types)), format_(format) {}

  absl::StatusOr<size_t> Read(absl::Span<char> out) {
    std::string line;
    while (used_ == text_.size()) {
      REPOTXN_ASSIGN_OR_RETURN(const bool has_line, types_->ReadLine(&line));
      if (!has_line) return AtTheEnd();
      REPOTXN_ASSIGN_OR_RETURN(const Header header, ParseHeader(line, format_));
      if (header.type == ObjectType::kBlob) continue;
      text_ = absl::StrCat(header.oid.ToHex(), "\n");
      used_ = 0;
    }
    const size_t n = text_.copy(out.data(), out.size(), used_);
    used_ += n;
    return n;
  }

 private:
  absl::StatusOr<size_t> AtTheEnd() {
    REPOTXN_ASSIGN_OR_RETURN(const GitResult result, types_->Finish());
    if (result.exit_code != 0) return Unreadable(result, "");
    return size_t{0};
  }

  const std::unique_ptr<GitStream> types_;
  const ObjectFormat format_;
  std::string text_;
  size_t used_ = 0;
};

absl::Status VisitOne(const LinkScan& scan, const Header& header, absl::string_view content,
                      const LinkVisitor& visit) {
  auto links = ParseObjectLinks(header.type, content, scan.format);
  if (!links.ok()) return WithDetail(links.status(), "oid", header.oid.ToHex());
  // The tree is the first link of a commit.
  const bool is_cut = header.type == ObjectType::kCommit && scan.shallow.contains(header.oid);
  if (is_cut) links->resize(1);
  return visit(header.oid, header.type, *links);
}

}  // namespace

absl::StatusOr<std::vector<ObjectId>> ParseObjectLinks(ObjectType type, absl::string_view content,
                                                       ObjectFormat format) {
  std::vector<ObjectId> links;
  if (type == ObjectType::kCommit) {
    REPOTXN_ASSIGN_OR_RETURN(links, CommitLinks(content, format));
  } else if (type == ObjectType::kTree) {
    REPOTXN_ASSIGN_OR_RETURN(links, TreeLinks(content, format));
  } else if (type == ObjectType::kTag) {
    REPOTXN_ASSIGN_OR_RETURN(const TagTarget target, ParseTagTarget(content, format));
    links.push_back(target.oid);
  }
  return links;
}

absl::StatusOr<ShallowCommits> ReadShallow(storage::FileSystem& fs,
                                           const storage::StorePath& repository,
                                           ObjectFormat format) {
  ShallowCommits commits;
  const auto text = storage::ReadFile(fs, repository / "shallow", kShallowBytesMax);
  if (absl::IsNotFound(text.status())) return commits;
  if (!text.ok()) return text.status();
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const auto oid = ObjectId::FromHex(line, format);
    if (!oid.ok()) return absl::DataLossError("list of shallow commits is malformed");
    commits.insert(*oid);
  }
  return commits;
}

absl::Status ScanLinks(const LinkScan& scan, InputSource ids, const LinkVisitor& visit) {
  REPOTXN_ASSIGN_OR_RETURN(
      std::unique_ptr<GitStream> types,
      GitStream::Start(CatFile(scan, "--batch-check"), std::move(ids), scan.timeout));
  LinkingIds linking(std::move(types), scan.format);
  REPOTXN_ASSIGN_OR_RETURN(
      const std::unique_ptr<GitStream> contents,
      GitStream::Start(
          CatFile(scan, "--batch"), [&linking](absl::Span<char> out) { return linking.Read(out); },
          scan.timeout));
  std::string line;
  std::string last;
  for (;;) {
    auto has_line = contents->ReadLine(&line);
    if (has_line.ok() && !*has_line) break;
    const auto header = has_line.ok() ? ParseHeader(line, scan.format) : has_line.status();
    REPOTXN_RETURN_IF_ERROR(header.status());
    if (header->size > scan.content_bytes_max) {
      return WithDetail(absl::ResourceExhaustedError("object is larger than allowed"), "oid",
                        header->oid.ToHex());
    }
    last = header->oid.ToHex();
    // The content is followed by a newline.
    const auto content = contents->ReadExactly(static_cast<size_t>(header->size) + 1);
    if (!content.ok()) break;  // the child's end says why
    REPOTXN_RETURN_IF_ERROR(
        VisitOne(scan, *header, absl::string_view(*content).substr(0, content->size() - 1), visit));
  }
  REPOTXN_ASSIGN_OR_RETURN(const GitResult result, contents->Finish());
  if (result.exit_code != 0) return Unreadable(result, "");
  return absl::OkStatus();
}

}  // namespace repotxn::objects
