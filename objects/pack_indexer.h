// Turns a pack that a client sends into pack, idx and rev files of an object snapshot, with its
// links proved.
//
// One child: `git -c core.fsync=none index-pack --stdin --fix-thin
// --check-self-contained-and-connected --rev-index`. It proves for every object of the pack that
// all objects it names are there, with the right types, in the pack or in the repository, and that
// deltas and hashes are right. With the closure of what was there before, closure of the result
// follows. Content checks are policy (`fsck`), off by default as in Git, so that old histories are
// not refused [B21].
//
// Success is exit code 0 (self-contained) or 1 (links point outside: the normal push) with exactly
// one `pack\t<hex>\n` line on standard output. Git takes bytes after the pack silently, up to what
// its buffer holds; the stream is hashed here too and must end in its own trailer, so they are
// refused.
//
// A pack of no objects is recognised by its header, its trailer verified, and nothing staged.
//
// Durability: nothing is synced; the caller syncs the files when it links them into the payload.
// After any error throw the whole object snapshot away: temporary files remain in it. No child is
// left.
//
// Thread-safe: each call is independent; one call for one object snapshot at a time.
#ifndef REPOTXN_OBJECTS_PACK_INDEXER_H_
#define REPOTXN_OBJECTS_PACK_INDEXER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "objects/git_child.h"
#include "storage/object_id.h"

namespace repotxn::objects {

class PackIndexer {
 public:
  struct Options {
    // Most bytes of a pack as sent. 0: no limit.
    int64_t input_bytes_max = 0;
    // Wall-clock bound of one call.
    absl::Duration timeout = absl::Hours(1);
    // Content checks.
    bool fsck = false;
    // With `fsck`: severities as `id=severity,…` for `--strict=`; empty: Git's own.
    std::string fsck_severities;
    // Descriptor of the store's LOCK for the child; -1: none.
    int lock_fd = -1;
    std::string program = "git";
  };

  struct Result {
    // The pack had no objects; nothing is staged and the other fields are empty.
    bool is_empty = false;
    // Stem of the staged files in objects/pack: "pack-<hex>".
    std::string pack_name;
    // Objects that the client sent (bases that --fix-thin appended are not counted).
    int64_t sent_objects = 0;
    int64_t sent_bytes = 0;
    // No object of the pack names one outside it.
    bool is_self_contained = false;
  };

  explicit PackIndexer(Options options) : options_(std::move(options)) {}

  // Indexes the pack that `source` gives, into the object snapshot at the absolute path
  // `object_snapshot`.
  //
  // Errors
  //   kInvalidArgument     not a sound pack: damage, truncation, bytes behind it, another object
  //   format, content that
  //                        fsck refuses; detail "stderr".
  //   kFailedPrecondition  an object that the pack names, or a base of a thin pack, is nowhere;
  //   detail "oid" when Git
  //                        said which, and "stderr".
  //   kResourceExhausted   more than `input_bytes_max`, or no space or process.
  //   kDeadlineExceeded    the timeout passed.
  // and those of `source`.
  absl::StatusOr<Result> Index(const std::string& object_snapshot, ObjectFormat format,
                               InputSource source) const;

 private:
  absl::StatusOr<GitCommand> Command(const std::string& object_snapshot) const;

  const Options options_;
};

// Verdict on a finished index-pack, without side effects: maps exit code and output to a pack name
// or a status.
absl::StatusOr<std::string> JudgeIndexPack(const GitResult& result, ObjectFormat format,
                                           absl::string_view object_snapshot);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_PACK_INDEXER_H_
