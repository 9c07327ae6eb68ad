// Layout of packed-refs.
//
//   file    = [header] ref*
//   header  = "# pack-refs with:" *(" " trait) [" "] "\n"
//   ref     = hex " " name "\n" ["^" hex "\n"]
//   hex     = 40 or 64 digits, by the repository's object format
//   trait   = "sorted" / "fully-peeled" / "peeled" / unknown, which says nothing
//
// What is written: the header `# pack-refs with: peeled fully-peeled sorted ` with its trailing
// blank, as Git does; lines strictly ascending by bytes of the name; a peeled line behind exactly
// the refs whose object is an annotated tag. The last newline is mandatory: Git takes a file
// without it for damaged, so a truncated one is noticed.
//
// Git trusts the header. A file that claims `sorted` and is not answers a listing and a look-up
// differently, and a missing peeled line under `fully-peeled` hides a tag; hence the reader here
// checks the order, and an edit of a file that vouches for less writes a header that vouches for
// less.
//
// Crash argument. The file is never changed in place: the materializer writes the new content under
// another name, outside the repository, and renames it over the old one, so a reader meets all of
// the old file or all of the new one. A ref that moves in is set here first and its loose file goes
// afterwards: in between the loose file still wins, and its value is older than or equal to the
// packed one, never lost. A deleted ref loses its line first, so that no older value comes to light
// when the loose file goes. An edit done a second time changes nothing, so redo may begin anywhere.
#include "refs/packed_refs.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "refs/ref_error.h"
#include "refs/ref_name.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::refs {
namespace {

constexpr absl::string_view kHeaderStart = "# pack-refs with:";

absl::string_view View(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

bool StartsWith(absl::string_view text, absl::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

size_t HexDigits(ObjectFormat format) { return 2 * ObjectIdBytes(format); }

absl::Status DamagedAt(uint64_t line, absl::string_view rule) {
  return RefFileDamageError(
      {std::string(kPackedRefsPath.data(), kPackedRefsPath.size()), line, std::string(rule)});
}

// No value when `hex` is no object id that a ref may hold.
std::optional<ObjectId> OidOfHex(absl::string_view hex, ObjectFormat format) {
  const auto oid = ObjectId::FromHex(hex, format);
  if (!oid.ok() || oid->IsZero()) return std::nullopt;
  return *oid;
}

}  // namespace

absl::string_view PackedRefsHeader(Peeling peeling) {
  switch (peeling) {
    case Peeling::kFully:
      return "# pack-refs with: peeled fully-peeled sorted \n";
    case Peeling::kTags:
      return "# pack-refs with: peeled sorted \n";
    case Peeling::kUnknown:
      return "# pack-refs with: sorted \n";
  }
  return "";
}

// One pass over the bytes; fills `refs_`.
class PackedRefsParser {
 public:
  PackedRefsParser(std::string content, ObjectFormat format) : refs_(format) {
    refs_.content_ = std::move(content);
  }

  absl::StatusOr<PackedRefs> Parse() {
    const absl::string_view content = View(refs_.content_);
    if (content.size() > static_cast<uint64_t>(kPackedRefsBytesMax)) {
      return absl::OutOfRangeError("packed-refs larger than can be indexed");
    }
    if (content.empty()) return std::move(refs_);
    if (content.back() != '\n') {
      const auto newlines = std::count(content.begin(), content.end(), '\n');
      return DamagedAt(static_cast<uint64_t>(newlines) + 1, "last line has no newline");
    }
    refs_.peeling_ = Peeling::kUnknown;
    refs_.lines_.reserve(content.size() / (HexDigits(refs_.format_) + 24));
    for (size_t begin = 0; begin < content.size();) {
      const size_t end = content.find('\n', begin);
      ++line_;
      REPOTXN_RETURN_IF_ERROR(TakeLine(content.substr(begin, end - begin), begin));
      begin = end + 1;
    }
    REPOTXN_RETURN_IF_ERROR(SortLines());
    return std::move(refs_);
  }

 private:
  absl::Status TakeLine(absl::string_view line, size_t offset) {
    if (line.empty()) return DamagedAt(line_, "empty line");
    if (line.front() == '#') return TakeHeader(line);
    if (line.front() == '^') return TakePeeled(line);
    return TakeRef(line, offset);
  }

  absl::Status TakeHeader(absl::string_view line) {
    if (line_ != 1 || !StartsWith(line, kHeaderStart)) {
      return DamagedAt(line_, "comment that is not the header");
    }
    bool peeled = false;
    bool fully_peeled = false;
    absl::string_view rest = line.substr(kHeaderStart.size());
    while (!rest.empty()) {
      const size_t blank = std::min(rest.find(' '), rest.size());
      const absl::string_view trait = rest.substr(0, blank);
      claims_sorted_ = claims_sorted_ || trait == "sorted";
      fully_peeled = fully_peeled || trait == "fully-peeled";
      peeled = peeled || trait == "peeled";
      rest.remove_prefix(std::min(blank + 1, rest.size()));
    }
    if (fully_peeled) {
      refs_.peeling_ = Peeling::kFully;
    } else if (peeled) {
      refs_.peeling_ = Peeling::kTags;
    }
    return absl::OkStatus();
  }

  absl::Status TakePeeled(absl::string_view line) {
    if (!may_be_peeled_) return DamagedAt(line_, "peeled line without a ref");
    may_be_peeled_ = false;
    if (!OidOfHex(line.substr(1), refs_.format_)) return DamagedAt(line_, "malformed object id");
    return absl::OkStatus();
  }

  absl::Status TakeRef(absl::string_view line, size_t offset) {
    const size_t digits = HexDigits(refs_.format_);
    if (line.size() <= digits + 1 || line[digits] != ' ') {
      return DamagedAt(line_, "line that is no ref");
    }
    if (!OidOfHex(line.substr(0, digits), refs_.format_)) {
      return DamagedAt(line_, "malformed object id");
    }
    const absl::string_view name = line.substr(digits + 1);
    if (name == kHeadText || FindRefNameFault(name)) {
      return DamagedAt(line_, "malformed ref name");
    }
    if (!refs_.lines_.empty()) {
      if (name == last_name_) return DamagedAt(line_, "second line of a ref");
      if (name < last_name_) {
        if (claims_sorted_) return DamagedAt(line_, "unsorted although the header says sorted");
        refs_.in_file_order_ = false;
      }
    }
    refs_.lines_.push_back(static_cast<uint32_t>(offset));
    last_name_ = name;
    may_be_peeled_ = true;
    return absl::OkStatus();
  }

  // Files older than the `sorted` trait come in any order.
  absl::Status SortLines() {
    if (refs_.in_file_order_) return absl::OkStatus();
    std::vector<uint32_t>& lines = refs_.lines_;
    const size_t name_at = HexDigits(refs_.format_) + 1;
    const absl::string_view content = View(refs_.content_);
    const auto name_of = [&](uint32_t offset) {
      const size_t begin = offset + name_at;
      return content.substr(begin, content.find('\n', begin) - begin);
    };
    std::sort(lines.begin(), lines.end(),
              [&](uint32_t a, uint32_t b) { return name_of(a) < name_of(b); });
    for (size_t i = 1; i < lines.size(); ++i) {
      if (name_of(lines[i - 1]) != name_of(lines[i])) continue;
      const size_t later = std::max(lines[i - 1], lines[i]);
      const auto newlines = std::count(content.data(), content.data() + later, '\n');
      return DamagedAt(static_cast<uint64_t>(newlines) + 1, "second line of a ref");
    }
    return absl::OkStatus();
  }

  PackedRefs refs_;
  uint64_t line_ = 0;
  bool claims_sorted_ = false;
  bool may_be_peeled_ = false;   // the line before was a ref
  absl::string_view last_name_;  // into refs_.content_, which does not move while parsing
};

absl::StatusOr<PackedRefs> PackedRefs::Parse(std::string content, ObjectFormat format) {
  return PackedRefsParser(std::move(content), format).Parse();
}

absl::string_view PackedRefs::NameAt(size_t position) const {
  const absl::string_view content = View(content_);
  const size_t begin = lines_[position] + HexDigits(format_) + 1;
  return content.substr(begin, content.find('\n', begin) - begin);
}

PackedRefs::Entry PackedRefs::At(size_t position) const {
  REPOTXN_DCHECK(position < lines_.size());
  const absl::string_view content = View(content_);
  const size_t digits = HexDigits(format_);
  Entry entry;
  entry.name = NameAt(position);
  entry.oid = OidOfHex(content.substr(lines_[position], digits), format_).value_or(ObjectId());
  const size_t next = lines_[position] + digits + 1 + entry.name.size() + 1;
  if (next < content.size() && content[next] == '^') {
    entry.peeled = OidOfHex(content.substr(next + 1, digits), format_).value_or(ObjectId());
  }
  REPOTXN_DCHECK(!entry.oid.empty());
  return entry;
}

size_t PackedRefs::LowerBound(absl::string_view name) const {
  size_t begin = 0;
  size_t end = lines_.size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (NameAt(middle) < name) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

std::optional<PackedRefs::Entry> PackedRefs::Find(absl::string_view name) const {
  const size_t position = LowerBound(name);
  if (position == lines_.size() || NameAt(position) != name) return std::nullopt;
  return At(position);
}

PackedRefs::Range PackedRefs::PrefixRange(absl::string_view prefix) const {
  Range range;
  range.begin = LowerBound(prefix);
  // The names that begin with a prefix are contiguous: search for the first one behind them.
  size_t begin = range.begin;
  size_t end = lines_.size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (StartsWith(NameAt(middle), prefix)) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  range.end = begin;
  return range;
}

}  // namespace repotxn::refs
