#include "refs/ref_reader.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/types/span.h"
#include "refs/ref_error.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::refs {
namespace {

// How often a read begins again because packed-refs was replaced under it. Each round needs another
// packing in between, so the bound is for form's sake.
constexpr int kRoundsMax = 8;

// Whether two looks at a name saw the same file. A file is replaced by rename, never written to.
bool IsSameFile(const storage::FileInfo& a, const storage::FileInfo& b) {
  return a.inode == b.inode && a.size == b.size && a.modified == b.modified;
}

absl::StatusOr<std::string> ReadAll(const storage::ReadableFile& file) {
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  if (size > kPackedRefsBytesMax) {
    return absl::OutOfRangeError("packed-refs larger than can be indexed");
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  REPOTXN_ASSIGN_OR_RETURN(const size_t count,
                           file.ReadAt(0, absl::MakeSpan(bytes.data(), bytes.size())));
  bytes.resize(count);
  return bytes;
}

RefListing Merge(LooseRefListing loose, const PackedRefs& packed, absl::string_view prefix) {
  RefListing listing;
  const PackedRefs::Range range = packed.PrefixRange(prefix);
  listing.refs.reserve(loose.refs.size() + (range.end - range.begin));
  // Sorted names of damaged loose refs, which hide what is packed.
  std::vector<absl::string_view> hidden;
  for (const RefFault& fault : loose.faults) {
    if (absl::IsDataLoss(fault.status)) hidden.push_back(fault.name);
  }
  auto next_loose = loose.refs.begin();
  for (size_t position = range.begin; position < range.end; ++position) {
    const PackedRefs::Entry entry = packed.At(position);
    while (next_loose != loose.refs.end() && next_loose->name.view() < entry.name) {
      listing.refs.push_back(std::move(*next_loose++));
    }
    if (next_loose != loose.refs.end() && next_loose->name.view() == entry.name) continue;
    if (std::binary_search(hidden.begin(), hidden.end(), entry.name)) continue;
    auto name = RefName::Parse(entry.name);
    if (REPOTXN_NEVER(!name.ok())) continue;  // Judged when the file was parsed.
    listing.refs.push_back(NamedRef{std::move(name).value(), entry.value()});
  }
  std::move(next_loose, loose.refs.end(), std::back_inserter(listing.refs));
  listing.faults = std::move(loose.faults);
  return listing;
}

}  // namespace

absl::StatusOr<ResolvedRef> ResolveSymbolic(const RefName& name, RefLookup lookup) {
  RefName current = name;
  std::vector<RefName> hops;
  for (int depth = 0; depth < kSymbolicDepthMax; ++depth) {
    REPOTXN_ASSIGN_OR_RETURN(RefValue value, lookup(current));
    if (!value.is_symbolic()) {
      return ResolvedRef{std::move(current), std::move(value), std::move(hops)};
    }
    hops.push_back(std::move(current));
    current = value.target();
  }
  return absl::FailedPreconditionError("chain of symbolic refs is too long");
}

struct RefReader::PackedFile {
  std::optional<storage::FileInfo> identity;      // none: there was no file
  std::unique_ptr<storage::ReadableFile> opened;  // keeps the inode number from coming back
  std::shared_ptr<const PackedRefs> refs;
};

RefReader::RefReader(storage::FileSystem& fs, storage::StorePath repository, ObjectFormat format)
    : fs_(fs), repository_(std::move(repository)), format_(format) {}
RefReader::~RefReader() = default;

absl::StatusOr<std::optional<storage::FileInfo>> RefReader::StatPacked() {
  auto info = fs_.Stat(repository_ / kPackedRefsPath);
  if (absl::IsNotFound(info.status())) return std::optional<storage::FileInfo>();
  REPOTXN_RETURN_IF_ERROR(info.status());
  return std::optional<storage::FileInfo>(*info);
}

absl::StatusOr<bool> RefReader::RefreshPacked() {
  const storage::StorePath path = repository_ / kPackedRefsPath;
  for (int round = 0; round < kRoundsMax; ++round) {
    REPOTXN_ASSIGN_OR_RETURN(const std::optional<storage::FileInfo> before, StatPacked());
    if (kept_ != nullptr && before.has_value() == kept_->identity.has_value() &&
        (!before || IsSameFile(*before, *kept_->identity))) {
      return false;
    }
    auto fresh = std::make_unique<PackedFile>();
    fresh->identity = before;
    if (!before) {
      fresh->refs = std::make_shared<const PackedRefs>(format_);
      kept_ = std::move(fresh);
      return true;
    }
    auto opened = fs_.OpenForRead(path);
    if (absl::IsNotFound(opened.status())) continue;
    REPOTXN_RETURN_IF_ERROR(opened.status());
    REPOTXN_ASSIGN_OR_RETURN(std::string bytes, ReadAll(**opened));
    // The file that was opened is the one that was looked at only if it is still there.
    REPOTXN_ASSIGN_OR_RETURN(const std::optional<storage::FileInfo> after, StatPacked());
    if (!after || !IsSameFile(*before, *after)) continue;
    REPOTXN_ASSIGN_OR_RETURN(PackedRefs refs, PackedRefs::Parse(std::move(bytes), format_));
    fresh->opened = std::move(opened).value();
    fresh->refs = std::make_shared<const PackedRefs>(std::move(refs));
    kept_ = std::move(fresh);
    return true;
  }
  return absl::UnavailableError("packed-refs is replaced faster than it can be read");
}

absl::StatusOr<RefValue> RefReader::Read(const RefName& name) {
  for (int round = 0; round < kRoundsMax; ++round) {
    REPOTXN_ASSIGN_OR_RETURN(RefValue loose, ReadLooseRef(fs_, repository_, name, format_));
    if (!loose.is_absent() || name.IsHead()) return loose;
    REPOTXN_ASSIGN_OR_RETURN(const bool replaced, RefreshPacked());
    // Replaced since the loose look: the ref may have become loose again, and newer, meanwhile.
    if (replaced) continue;
    const auto entry = kept_->refs->Find(name.view());
    return entry ? entry->value() : RefValue::Absent();
  }
  return absl::UnavailableError("packed-refs is replaced faster than it can be read");
}

absl::StatusOr<ResolvedRef> RefReader::Resolve(const RefName& name) {
  return ResolveSymbolic(name, [this](const RefName& hop) { return Read(hop); });
}

absl::StatusOr<RefValue> RefReader::Head() {
  REPOTXN_ASSIGN_OR_RETURN(RefValue value, Read(RefName::Head()));
  if (value.is_absent()) return absl::NotFoundError("repository without HEAD");
  return value;
}

absl::StatusOr<RefListing> RefReader::List(absl::string_view prefix) {
  REPOTXN_RETURN_IF_ERROR(RefreshPacked().status());
  for (int round = 0; round < kRoundsMax; ++round) {
    REPOTXN_ASSIGN_OR_RETURN(LooseRefListing loose,
                             ListLooseRefs(fs_, repository_, prefix, format_));
    REPOTXN_ASSIGN_OR_RETURN(const bool replaced, RefreshPacked());
    if (!replaced) return Merge(std::move(loose), *kept_->refs, prefix);
  }
  return absl::UnavailableError("packed-refs is replaced faster than it can be read");
}

absl::StatusOr<std::shared_ptr<const PackedRefs>> RefReader::Packed() {
  REPOTXN_RETURN_IF_ERROR(RefreshPacked().status());
  return kept_->refs;
}

}  // namespace repotxn::refs
