#include "objects/pack_indexer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "objects/error_detail.h"
#include "objects/pack_file.h"
#include "objects/pack_stream.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr int kErrorLinesMax = 5;
// What index-pack prints is one line of 46 or 70 bytes; a little more shows that there is more.
constexpr int64_t kOutputBytesMax = 16 << 10;

absl::Status TooLarge() { return absl::ResourceExhaustedError("pack is larger than allowed"); }

// The source as index-pack sees it: counted, bounded, hashed, and begun with what was read to judge
// the header.
class WatchedSource {
 public:
  WatchedSource(InputSource source, ObjectFormat format, int64_t bytes_max)
      : source_(std::move(source)), bytes_max_(bytes_max), stream_(format) {}

  // Reads until `bytes` bytes are there or the source ends, keeps them for Read(), and returns
  // them.
  absl::StatusOr<absl::string_view> Peek(size_t bytes) {
    while (head_.size() < bytes) {
      std::string more(bytes - head_.size(), '\0');
      REPOTXN_ASSIGN_OR_RETURN(const size_t got, Pull(absl::MakeSpan(&more[0], more.size())));
      if (got == 0) break;
      head_.append(more, 0, got);
    }
    return absl::string_view(head_);
  }

  absl::StatusOr<size_t> Read(absl::Span<char> out) {
    if (head_.empty()) return Pull(out);
    const size_t n = head_.copy(out.data(), out.size());
    head_.erase(0, n);
    return n;
  }

  // Reads what is left of the source. The stream is at its end afterwards.
  absl::Status Drain() {
    std::string chunk(64 << 10, '\0');
    for (;;) {
      REPOTXN_ASSIGN_OR_RETURN(const size_t got, Pull(absl::MakeSpan(&chunk[0], chunk.size())));
      if (got == 0) return absl::OkStatus();
    }
  }

  PackStream& stream() { return stream_; }

 private:
  absl::StatusOr<size_t> Pull(absl::Span<char> out) {
    if (is_over_) return size_t{0};
    REPOTXN_ASSIGN_OR_RETURN(const size_t got, source_(out));
    is_over_ = got == 0;
    stream_.Add(absl::string_view(out.data(), got));
    if (bytes_max_ > 0 && stream_.bytes() > bytes_max_) return TooLarge();
    return got;
  }

  const InputSource source_;
  const int64_t bytes_max_;
  PackStream stream_;
  std::string head_;
  bool is_over_ = false;
};

absl::Status NotAPack(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Oid at the end of Git's complaint about a missing object; empty when it says none.
std::string MissingOid(absl::string_view errors) {
  constexpr absl::string_view kComplaint = "did not receive expected object ";
  const size_t at = errors.find(kComplaint);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = errors.substr(at + kComplaint.size());
  const auto oid = ObjectId::FromHex(rest.substr(0, rest.find_first_not_of("0123456789abcdef")));
  return oid.ok() ? oid->ToHex() : "";
}

absl::Status Refusal(const GitResult& result, absl::string_view object_snapshot) {
  const absl::string_view errors = result.errors;
  absl::Status status = absl::InvalidArgumentError("pack is not sound");
  const std::string missing = MissingOid(errors);
  if (absl::StrContains(errors, "did not receive expected object") ||
      absl::StrContains(errors, "unresolved delta")) {
    status = absl::FailedPreconditionError("an object that the pack needs is missing");
  } else if (absl::StrContains(errors, "exceeds maximum allowed size")) {
    status = TooLarge();
  } else if (absl::StrContains(errors, "No space left on device") ||
             absl::StrContains(errors, "Disk quota exceeded") ||
             absl::StrContains(errors, "Out of memory") ||
             absl::StrContains(errors, "Too many open files")) {
    status = absl::ResourceExhaustedError("no resources to index the pack");
  } else if (result.exit_code > 128) {
    // A signal: somebody killed the child; that says nothing about the pack.
    status = absl::UnavailableError("index-pack was ended by a signal");
  }
  if (!missing.empty()) status = WithDetail(status, "oid", missing);
  status = WithDetail(status, "exit", absl::StrCat(result.exit_code));
  return WithDetail(status, "stderr", SanitisedErrors(errors, kErrorLinesMax, object_snapshot));
}

}  // namespace

absl::StatusOr<std::string> JudgeIndexPack(const GitResult& result, ObjectFormat format,
                                           absl::string_view object_snapshot) {
  if (result.exit_code != 0 && result.exit_code != 1) return Refusal(result, object_snapshot);
  absl::string_view line = result.output;
  const bool has_line = absl::ConsumePrefix(&line, "pack\t");
  const size_t hex_digits = 2 * ObjectIdBytes(format);
  if (!has_line || line.size() <= hex_digits || line[hex_digits] != '\n') {
    return Refusal(result, object_snapshot);
  }
  REPOTXN_ASSIGN_OR_RETURN(const ObjectId name,
                           ObjectId::FromHex(line.substr(0, hex_digits), format));
  if (line.size() != hex_digits + 1) return NotAPack("bytes follow the pack");
  return absl::StrCat("pack-", name.ToHex());
}

absl::StatusOr<GitCommand> PackIndexer::Command(const std::string& object_snapshot) const {
  if (absl::StrContains(options_.fsck_severities, '\n') ||
      absl::StrContains(options_.fsck_severities, "skiplist")) {
    return absl::InvalidArgumentError("fsck severities are malformed");
  }
  GitCommand command;
  command.repository = object_snapshot;
  command.arguments = {"index-pack", "--stdin", "--fix-thin",
                       "--check-self-contained-and-connected", "--rev-index"};
  if (options_.fsck) {
    command.arguments.push_back(options_.fsck_severities.empty()
                                    ? "--strict"
                                    : absl::StrCat("--strict=", options_.fsck_severities));
  }
  if (options_.input_bytes_max > 0) {
    command.arguments.push_back(absl::StrCat("--max-input-size=", options_.input_bytes_max));
  }
  command.is_check = true;
  command.lock_fd = options_.lock_fd;
  command.program = options_.program;
  return command;
}

absl::StatusOr<PackIndexer::Result> PackIndexer::Index(const std::string& object_snapshot,
                                                       ObjectFormat format,
                                                       InputSource source) const {
  REPOTXN_ASSIGN_OR_RETURN(const GitCommand command, Command(object_snapshot));
  WatchedSource watched(std::move(source), format, options_.input_bytes_max);
  REPOTXN_ASSIGN_OR_RETURN(const absl::string_view head,
                           watched.Peek(static_cast<size_t>(kPackHeaderBytes)));
  const auto count = PackHeaderCount(head);
  if (!count.ok()) return NotAPack("not a pack");

  Result indexed;
  if (*count == 0) {
    REPOTXN_RETURN_IF_ERROR(watched.Drain());
    const int64_t empty_pack_bytes = kPackHeaderBytes + static_cast<int64_t>(ObjectIdBytes(format));
    if (watched.stream().bytes() != empty_pack_bytes || !watched.stream().EndsInItsTrailer()) {
      return NotAPack("pack of no objects is not sound");
    }
    indexed.is_empty = true;
    return indexed;
  }

  RunLimits limits;
  limits.timeout = options_.timeout;
  limits.output_bytes_max = kOutputBytesMax;
  const auto read = [&watched](absl::Span<char> out) { return watched.Read(out); };
  REPOTXN_ASSIGN_OR_RETURN(const GitResult result, RunGit(command, read, limits));
  auto name = JudgeIndexPack(result, format, object_snapshot);
  if (absl::IsResourceExhausted(name.status()) && watched.Drain().ok() &&
      !watched.stream().EndsInItsTrailer()) {
    // A damaged size makes Git ask for terabytes; that is the pack's fault, not the machine's.
    return WithDetail(NotAPack("pack is not sound"), "stderr",
                      SanitisedErrors(result.errors, kErrorLinesMax, object_snapshot));
  }
  if (!name.ok()) return name.status();
  indexed.pack_name = *std::move(name);
  // The child may have stopped at the trailer before the source ended.
  REPOTXN_RETURN_IF_ERROR(watched.Drain());
  if (!watched.stream().EndsInItsTrailer()) return NotAPack("bytes follow the pack");
  indexed.sent_objects = *count;
  indexed.sent_bytes = watched.stream().bytes();
  indexed.is_self_contained = result.exit_code == 0;
  return indexed;
}

}  // namespace repotxn::objects
