// The packed-refs file: parsed as an immutable value, and its next content computed by an edit.
//
// The byte layout and the crash argument stand in packed_refs.cc. A value holds the file's bytes
// once and four bytes of index a ref, so a million refs cost the file and 4 MB.
//
// Example:
//   REPOTXN_ASSIGN_OR_RETURN(const PackedRefs packed, PackedRefs::Parse(std::move(bytes),
//   ObjectFormat::kSha1)); REPOTXN_ASSIGN_OR_RETURN(const PackedRefsEdit edit,
//   EditPackedRefs(packed, set, remove)); if (edit.changed) Write(edit.content);
//
// Thread-compatible.
#ifndef REPOTXN_REFS_PACKED_REFS_H_
#define REPOTXN_REFS_PACKED_REFS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "refs/ref_value.h"
#include "storage/object_id.h"
#include "wal/operation.h"

namespace repotxn::refs {

inline constexpr absl::string_view kPackedRefsPath = "packed-refs";
inline constexpr int64_t kPackedRefsBytesMax = UINT32_MAX;

// How far the file's header vouches for missing peeled lines.
enum class Peeling : uint8_t {
  kUnknown,  // no line: not known whether the object is an annotated tag
  kTags,     // known below refs/tags/
  kFully,    // known for every ref; what we write
};

class PackedRefs {
 public:
  // One ref. `name` points into the PackedRefs.
  struct Entry {
    absl::string_view name;
    ObjectId oid;
    ObjectId peeled;  // no id: not an annotated tag, or not known (see peeling())

    RefValue value() const { return RefValue::Object(oid, peeled); }
  };
  // Half-open range of positions.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };

  // No refs; the same as an absent file. It counts as fully peeled.
  explicit PackedRefs(ObjectFormat format = ObjectFormat::kSha1) : format_(format) {}

  // Reads a whole file. Accepted: no header, unknown traits, an unsorted file that does not claim
  // `sorted`. Refused with kDataLoss and the line (RefFileDamageDetail): two lines of one name, a
  // file that claims `sorted` and is not, a missing last newline, a malformed name, id or header, a
  // peeled line without a ref, another comment line. kOutOfRange above kPackedRefsBytesMax. An
  // empty file has no refs.
  static absl::StatusOr<PackedRefs> Parse(std::string content, ObjectFormat format);

  size_t size() const { return lines_.size(); }
  bool empty() const { return lines_.empty(); }
  ObjectFormat format() const { return format_; }
  Peeling peeling() const { return peeling_; }
  // The file's bytes.
  const std::string& content() const { return content_; }
  // Bytes held.
  size_t MemoryBytes() const { return content_.capacity() + lines_.capacity() * sizeof(uint32_t); }

  // The ref at a position; positions are in order of names. Requires position < size().
  Entry At(size_t position) const;
  std::optional<Entry> Find(absl::string_view name) const;
  // First position whose name is not less than `name`.
  size_t LowerBound(absl::string_view name) const;
  // Positions of the names that begin with `prefix`, any bytes.
  Range PrefixRange(absl::string_view prefix) const;

 private:
  friend class PackedRefsParser;
  friend class PackedRefsMerger;

  absl::string_view NameAt(size_t position) const;

  std::string content_;
  std::vector<uint32_t> lines_;  // offset of each ref's line, in order of names
  ObjectFormat format_;
  Peeling peeling_ = Peeling::kFully;
  bool in_file_order_ = true;  // lines_ ascends: runs of lines can be copied as they are
};

// The header line, with its newline, of a sorted file that vouches for that much.
absl::string_view PackedRefsHeader(Peeling peeling);

struct PackedRefsEdit {
  bool changed = false;  // false: the file on disk already says this
  std::string content;   // the whole new file; empty when nothing changed
};

// The file after setting and removing named lines; what is not named keeps its bytes, a removed ref
// takes its peeled line along. A name to be removed that is not there, and a line to be set that is
// there, cost a look-up. A file that was not fully peeled does not claim to be so afterwards.
// kInvalidArgument: `set` or `remove` not strictly sorted, not disjoint, or a malformed name or id.
absl::StatusOr<PackedRefsEdit> EditPackedRefs(const PackedRefs& packed,
                                              absl::Span<const wal::PackedRef> set,
                                              absl::Span<const std::string> remove);

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_PACKED_REFS_H_
