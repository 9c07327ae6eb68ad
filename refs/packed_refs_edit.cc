// Computes the next content of packed-refs: a merge of the file's lines with the lines to be set
// and removed, in which runs of untouched lines are copied as blocks.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "refs/packed_refs.h"
#include "refs/ref_name.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::refs {
namespace {

absl::string_view View(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

absl::Status MalformedEdit() { return absl::InvalidArgumentError("malformed packed-refs edit"); }

bool IsPackableName(const std::string& name) {
  return View(name) != kHeadText && !FindRefNameFault(View(name));
}

bool IsOid(const std::string& bytes, ObjectFormat format) {
  const auto oid = ObjectId::FromBytes(View(bytes));
  return oid.ok() && oid->format() == format && !oid->IsZero();
}

absl::Status CheckEdit(absl::Span<const wal::PackedRef> set, absl::Span<const std::string> remove,
                       ObjectFormat format) {
  for (size_t i = 0; i < set.size(); ++i) {
    if (i > 0 && !(set[i - 1].name < set[i].name)) return MalformedEdit();
    if (!IsPackableName(set[i].name) || !IsOid(set[i].oid, format)) return MalformedEdit();
    if (!set[i].peeled.empty() && !IsOid(set[i].peeled, format)) return MalformedEdit();
  }
  for (size_t i = 0; i < remove.size(); ++i) {
    if (i > 0 && !(remove[i - 1] < remove[i])) return MalformedEdit();
    if (!IsPackableName(remove[i])) return MalformedEdit();
    const auto same =
        std::lower_bound(set.begin(), set.end(), remove[i],
                         [](const wal::PackedRef& a, const std::string& b) { return a.name < b; });
    if (same != set.end() && same->name == remove[i]) return MalformedEdit();
  }
  return absl::OkStatus();
}

}  // namespace

class PackedRefsMerger {
 public:
  explicit PackedRefsMerger(const PackedRefs& packed) : packed_(packed) {}

  PackedRefsEdit Merge(absl::Span<const wal::PackedRef> set, absl::Span<const std::string> remove) {
    for (const wal::PackedRef& ref : set) ConsiderSet(ref);
    for (const std::string& name : remove) ConsiderRemove(name);
    if (steps_.empty()) return PackedRefsEdit{};
    // Both lists were sorted by name and are disjoint; the step of a line that exists comes behind
    // the new lines before it, which have the same position.
    std::sort(steps_.begin(), steps_.end(),
              [](const Step& a, const Step& b) { return View(*a.name) < View(*b.name); });
    WriteHeader();
    size_t next = 0;
    for (const Step& step : steps_) {
      REPOTXN_DCHECK(next <= step.position);
      CopyRun(next, step.position);
      if (step.set != nullptr) WriteRef(*step.set);
      next = step.position + (step.replaces ? 1 : 0);
    }
    CopyRun(next, packed_.size());
    return PackedRefsEdit{true, std::move(out_)};
  }

 private:
  // One place where the new file differs from the old one.
  struct Step {
    const std::string* name;
    const wal::PackedRef* set;  // the new line; nullptr: only removed
    size_t position;            // in the old file: the line replaced, or the one to stand before
    bool replaces;
  };

  void ConsiderSet(const wal::PackedRef& ref) {
    const size_t position = packed_.LowerBound(View(ref.name));
    const bool is_there = position < packed_.size() && packed_.NameAt(position) == View(ref.name);
    if (is_there) {
      const PackedRefs::Entry entry = packed_.At(position);
      if (entry.oid.bytes() == View(ref.oid) && entry.peeled.bytes() == View(ref.peeled)) return;
    }
    bytes_added_ += 2 * (ref.oid.size() + ref.peeled.size()) + ref.name.size() + 4;
    steps_.push_back(Step{&ref.name, &ref, position, is_there});
  }

  void ConsiderRemove(const std::string& name) {
    const size_t position = packed_.LowerBound(View(name));
    if (position == packed_.size() || packed_.NameAt(position) != View(name)) return;
    steps_.push_back(Step{&name, nullptr, position, true});
  }

  void WriteHeader() {
    // A file that did not vouch for all peeled lines does not begin to by an edit of some.
    const Peeling peeling = packed_.empty() ? Peeling::kFully : packed_.peeling();
    const absl::string_view header = PackedRefsHeader(peeling);
    out_.reserve(packed_.content().size() + header.size() + bytes_added_);
    out_.append(header.data(), header.size());
  }

  // Copies the lines at [begin, end), each with its peeled line.
  void CopyRun(size_t begin, size_t end) {
    if (begin == end) return;
    const std::string& content = packed_.content();
    if (packed_.in_file_order_) {
      const size_t from = packed_.lines_[begin];
      const size_t to = end < packed_.size() ? packed_.lines_[end] : content.size();
      out_.append(content, from, to - from);
      return;
    }
    for (size_t position = begin; position < end; ++position) {
      const size_t from = packed_.lines_[position];
      size_t to = content.find('\n', from) + 1;
      if (to < content.size() && content[to] == '^') to = content.find('\n', to) + 1;
      out_.append(content, from, to - from);
    }
  }

  void WriteRef(const wal::PackedRef& ref) {
    AppendHex(ref.oid);
    out_.push_back(' ');
    out_ += ref.name;
    out_.push_back('\n');
    if (ref.peeled.empty()) return;
    out_.push_back('^');
    AppendHex(ref.peeled);
    out_.push_back('\n');
  }

  void AppendHex(const std::string& bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (const char byte : bytes) {
      const auto value = static_cast<uint8_t>(byte);
      out_.push_back(kDigits[value >> 4]);
      out_.push_back(kDigits[value & 15]);
    }
  }

  const PackedRefs& packed_;
  std::vector<Step> steps_;
  size_t bytes_added_ = 0;
  std::string out_;
};

absl::StatusOr<PackedRefsEdit> EditPackedRefs(const PackedRefs& packed,
                                              absl::Span<const wal::PackedRef> set,
                                              absl::Span<const std::string> remove) {
  REPOTXN_RETURN_IF_ERROR(CheckEdit(set, remove, packed.format()));
  return PackedRefsMerger(packed).Merge(set, remove);
}

}  // namespace repotxn::refs
