#include "objects/object_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "objects/error_detail.h"
#include "objects/zlib_stream.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

// "commit 9223372036854775807\0" and room to spare.
constexpr size_t kLooseHeaderBytesMax = 32;
// Enough of a loose file to inflate its header: a block's code tables come before the first byte.
constexpr size_t kLoosePrefixBytes = 4096;
// Two varints.
constexpr int64_t kDeltaPrefixBytes = 20;

absl::Status BadLoose() { return absl::DataLossError("loose object is damaged"); }

struct LooseHeader {
  ObjectInfo info;
  size_t bytes = 0;  // with the NUL
};

absl::StatusOr<LooseHeader> ParseLooseHeader(absl::string_view inflated) {
  const size_t end = inflated.substr(0, kLooseHeaderBytesMax).find('\0');
  if (end == absl::string_view::npos) return BadLoose();
  const absl::string_view text = inflated.substr(0, end);
  const size_t blank = text.find(' ');
  if (blank == absl::string_view::npos) return BadLoose();
  LooseHeader header;
  const auto type = ParseObjectType(text.substr(0, blank));
  if (!type.ok()) return BadLoose();
  header.info.type = *type;
  const absl::string_view digits = text.substr(blank + 1);
  // SimpleAtoi takes signs and blanks; Git does not write them.
  const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!is_number || !absl::SimpleAtoi(digits, &header.info.size)) return BadLoose();
  header.bytes = end + 1;
  return header;
}

absl::Status At(absl::Status status, const storage::StorePath& path) {
  return absl::IsDataLoss(status) ? WithDetail(std::move(status), "file", path.text()) : status;
}

}  // namespace

Pack::Pack(std::unique_ptr<PackIndex> index, std::unique_ptr<PackFile> file)
    : index_(std::move(index)), file_(std::move(file)) {}

absl::StatusOr<std::shared_ptr<const Pack>> Pack::Open(storage::FileSystem& fs,
                                                       const storage::StorePath& directory,
                                                       absl::string_view name,
                                                       ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath idx,
                           directory.Child(absl::StrCat(name, ".idx")));
  REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath pack,
                           directory.Child(absl::StrCat(name, ".pack")));
  REPOTXN_ASSIGN_OR_RETURN(auto index, PackIndex::Open(fs, idx, format));
  REPOTXN_ASSIGN_OR_RETURN(auto file, PackFile::Open(fs, pack, format));
  return FromParts(std::move(index), std::move(file));
}

absl::StatusOr<std::shared_ptr<const Pack>> Pack::FromParts(std::unique_ptr<PackIndex> index,
                                                            std::unique_ptr<PackFile> file) {
  if (index->count() != file->count()) {
    return WithDetail(WithDetail(Damaged("pack and index disagree", file->name(), 8), "expected",
                                 absl::StrCat(index->count())),
                      "found", absl::StrCat(file->count()));
  }
  return std::shared_ptr<const Pack>(new Pack(std::move(index), std::move(file)));
}

absl::StatusOr<int64_t> Pack::BaseOffset(const Link& link) const {
  if (link.header.kind == PackEntryKind::kOffsetDelta) return link.offset - link.header.distance;
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<int64_t> base, index_->Find(link.header.base));
  // A finished pack holds the bases of all its deltas.
  if (!base) return Damaged("delta base is not in the pack", file_->name(), link.offset);
  return *base;
}

absl::StatusOr<std::vector<Pack::Link>> Pack::Chain(int64_t offset) const {
  std::vector<Link> chain;
  for (int64_t at = offset;;) {
    if (chain.size() >= static_cast<size_t>(kDeltaDepthMax)) {
      return Damaged("delta chain is too deep or a circle", file_->name(), offset);
    }
    REPOTXN_ASSIGN_OR_RETURN(const PackEntryHeader header, file_->ReadHeader(at));
    chain.push_back({at, header});
    if (!header.IsDelta()) return chain;
    REPOTXN_ASSIGN_OR_RETURN(at, BaseOffset(chain.back()));
  }
}

absl::StatusOr<ObjectInfo> Pack::Info(int64_t offset) const {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<Link> chain, Chain(offset));
  ObjectInfo info;
  info.type = static_cast<ObjectType>(chain.back().header.kind);
  const PackEntryHeader& wanted = chain.front().header;
  info.size = wanted.size;
  if (wanted.IsDelta()) {
    REPOTXN_ASSIGN_OR_RETURN(const std::string prefix,
                             file_->Inflate(offset, wanted, kDeltaPrefixBytes));
    const auto size = DeltaResultSize(prefix);
    if (!size.ok()) return Damaged(size.status().message(), file_->name(), offset);
    info.size = *size;
  }
  return info;
}

absl::StatusOr<ObjectContent> Pack::Read(int64_t offset, int64_t bytes_max) const {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<Link> chain, Chain(offset));
  for (const Link& link : chain) {
    if (link.header.size > bytes_max) {
      return absl::OutOfRangeError("object is larger than the bound");
    }
  }
  ObjectContent object;
  object.type = static_cast<ObjectType>(chain.back().header.kind);
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
    REPOTXN_ASSIGN_OR_RETURN(std::string piece,
                             file_->Inflate(link->offset, link->header, link->header.size));
    if (!link->header.IsDelta()) {
      object.content = std::move(piece);
      continue;
    }
    auto result = ApplyDelta(object.content, piece, bytes_max);
    if (absl::IsDataLoss(result.status())) {
      return Damaged(result.status().message(), file_->name(), link->offset);
    }
    if (!result.ok()) return result.status();
    object.content = *std::move(result);
  }
  return object;
}

std::string LooseObjectName(const ObjectId& oid) {
  const std::string hex = oid.ToHex();
  return absl::StrCat(hex.substr(0, 2), "/", hex.substr(2));
}

absl::StatusOr<ObjectInfo> ParseLooseInfo(absl::string_view file_prefix) {
  ZlibStream stream;
  std::string head;
  size_t used = 0;
  // What follows the header may be cut off or damaged: only the header is asked for.
  const absl::Status fed = stream.Feed(file_prefix, kLooseHeaderBytesMax, &head, &used);
  if (!fed.ok() && !absl::IsDataLoss(fed)) return fed;
  REPOTXN_ASSIGN_OR_RETURN(const LooseHeader header, ParseLooseHeader(head));
  return header.info;
}

absl::StatusOr<ObjectContent> ParseLooseObject(absl::string_view file, int64_t bytes_max) {
  REPOTXN_ASSIGN_OR_RETURN(const ObjectInfo info, ParseLooseInfo(file));
  if (info.size > bytes_max) return absl::OutOfRangeError("object is larger than the bound");
  ZlibStream stream;
  std::string inflated;
  size_t used = 0;
  const size_t most = static_cast<size_t>(info.size) + kLooseHeaderBytesMax;
  REPOTXN_RETURN_IF_ERROR(stream.Feed(file, most, &inflated, &used));
  if (!stream.is_finished() || used != file.size()) return BadLoose();
  REPOTXN_ASSIGN_OR_RETURN(const LooseHeader header, ParseLooseHeader(inflated));
  if (inflated.size() - header.bytes != static_cast<size_t>(info.size)) return BadLoose();
  return ObjectContent{info.type, inflated.substr(header.bytes)};
}

absl::StatusOr<ObjectInfo> LooseObjectInfo(storage::FileSystem& fs,
                                           const storage::StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const auto file, fs.OpenForRead(path));
  std::string prefix(kLoosePrefixBytes, '\0');
  REPOTXN_ASSIGN_OR_RETURN(const size_t got,
                           file->ReadAt(0, absl::MakeSpan(&prefix[0], prefix.size())));
  prefix.resize(got);
  auto info = ParseLooseInfo(prefix);
  return info.ok() ? info : At(info.status(), path);
}

absl::StatusOr<ObjectContent> ReadLooseObject(storage::FileSystem& fs,
                                              const storage::StorePath& path, int64_t bytes_max) {
  // Stored, not deflated, content is a little longer than itself.
  const int64_t file_bytes_max = bytes_max + bytes_max / 1000 + 4096;
  REPOTXN_ASSIGN_OR_RETURN(const std::string bytes, storage::ReadFile(fs, path, file_bytes_max));
  auto object = ParseLooseObject(bytes, bytes_max);
  return object.ok() ? std::move(object) : At(object.status(), path);
}

absl::StatusOr<TagTarget> ParseTagTarget(absl::string_view content, ObjectFormat format) {
  const absl::Status bad = absl::DataLossError("tag is malformed");
  const size_t hex_digits = 2 * ObjectIdBytes(format);
  constexpr absl::string_view kObject = "object ";
  constexpr absl::string_view kType = "\ntype ";
  if (!absl::StartsWith(content, kObject)) return bad;
  content.remove_prefix(kObject.size());
  if (content.size() < hex_digits) return bad;
  TagTarget target;
  const auto oid = ObjectId::FromHex(content.substr(0, hex_digits), format);
  if (!oid.ok()) return bad;
  target.oid = *oid;
  content.remove_prefix(hex_digits);
  if (!absl::StartsWith(content, kType)) return bad;
  content.remove_prefix(kType.size());
  const auto type = ParseObjectType(content.substr(0, content.find('\n')));
  if (!type.ok()) return bad;
  target.type = *type;
  return target;
}

absl::StatusOr<std::vector<ObjectId>> ParseCommitParents(absl::string_view content,
                                                         ObjectFormat format) {
  const absl::Status bad = absl::DataLossError("commit is malformed");
  const size_t hex_digits = 2 * ObjectIdBytes(format);
  constexpr absl::string_view kTree = "tree ";
  constexpr absl::string_view kParent = "parent ";
  if (!absl::StartsWith(content, kTree)) return bad;
  std::vector<ObjectId> parents;
  for (absl::string_view keyword = kTree; absl::StartsWith(content, keyword); keyword = kParent) {
    content.remove_prefix(keyword.size());
    if (content.size() <= hex_digits || content[hex_digits] != '\n') return bad;
    const auto oid = ObjectId::FromHex(content.substr(0, hex_digits), format);
    if (!oid.ok()) return bad;
    if (keyword == kParent) parents.push_back(*oid);
    content.remove_prefix(hex_digits + 1);
  }
  return parents;
}

}  // namespace repotxn::objects
