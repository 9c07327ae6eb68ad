// Stock Git: as the maker of what both sides start from, and as the peer.
//
// Git runs with an environment of its own, no system or user configuration, and no automatic
// housekeeping.
#ifndef REPOTXN_BENCH_GIT_PEER_H_
#define REPOTXN_BENCH_GIT_PEER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/child_process.h"
#include "storage/object_id.h"

namespace repotxn::bench {

// Options for `git <arguments>`; streams are pipes, stderr is dropped.
storage::ChildOptions GitCommand(const std::vector<std::string>& arguments);

// Runs `git <arguments>` with `input` to its end. Its output, or kUnknown with what it said.
absl::StatusOr<std::string> RunGit(const std::vector<std::string>& arguments,
                                   absl::string_view input = {});

// A bare repository with a line of commits, all objects in one pack, and the branch main at the
// last.
struct History {
  std::string directory;  // absolute
  std::vector<ObjectId> commits;
};
absl::StatusOr<History> MakeHistory(const std::string& directory, int commits);

// Copies the one pack of a history into the objects of another repository.
absl::Status CopyPack(const History& history, const std::string& repository_directory);

// One `git update-ref --stdin` that makes a transaction of every update, with refs synced.
//
// Single-threaded.
class UpdateRefSession {
 public:
  static absl::StatusOr<std::unique_ptr<UpdateRefSession>> Start(
      const std::string& repository_directory);

  // Sets a ref, whatever it was. OK once git said that the transaction is committed.
  absl::Status Set(absl::string_view ref, const ObjectId& oid);

 private:
  explicit UpdateRefSession(std::unique_ptr<storage::ChildProcess> child)
      : child_(std::move(child)) {}
  std::unique_ptr<storage::ChildProcess> child_;
};

}  // namespace repotxn::bench

#endif  // REPOTXN_BENCH_GIT_PEER_H_
