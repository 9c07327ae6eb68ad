// Directories for Git children that write: one a repository, private to a transaction, captured as its changes.
//
//   REPOTXN_ASSIGN_OR_RETURN(WriteSnapshot * snapshot, txn.OpenWriteSnapshot({id}, {}));
//   REPOTXN_ASSIGN_OR_RETURN(const objects::GitResult result,
//                            snapshot->Run(snapshot->Command(id, {"update-ref", "--stdin"}), input));
//   if (result.exit_code != 0) return absl::FailedPreconditionError("git refused");
//   return txn.Capture(snapshot).status();
//
// The directory looks like the repository at lsn(): every file is a hard link to the live one, objects/ is new and
// borrows the live objects, so that what a child writes there *is* the quarantine. Git replaces files by rename, which
// leaves the live ones alone; a program that writes one of them in place writes the live file, so only Git and what is
// as careful may run here. Hooks do not run unless Command()'s hooks_path says so.
//
// Reads. What a child reads is not seen. ReadTracking::kCommand: the caller declares what the command is known to
// depend on, by reading it through the transaction (ReadRef, ListRefs, ReadFile). Refs and files that the child changed
// are declared by the capture. kWholeRepository: everything in the repository counts as read.
//
// Durability: none before the transaction commits. If we die: snapshots/ is wiped at open, a child dies with us.
//
// Single-threaded, like its transaction. Children have ended before Capture() and before the transaction ends.
#ifndef REPOTXN_TXN_WRITE_SNAPSHOT_H_
#define REPOTXN_TXN_WRITE_SNAPSHOT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "objects/git_child.h"
#include "storage/id128.h"
#include "storage/store_path.h"
#include "wal/lsn.h"

namespace repotxn::txn {

enum class ReadTracking : uint8_t { kCommand, kWholeRepository };

struct WriteSnapshotOptions {
  ReadTracking tracking = ReadTracking::kCommand;
  // Copies of logs/ and FETCH_HEAD, which Git writes in place; without it there are none. A reflog that a child writes
  // makes the capture fail.
  bool with_copied_logs = false;
};

// Errors of Transaction::OpenWriteSnapshot
//   kAborted             something that the transaction has read was written since its snapshot (detail as at commit);
//                        the transaction stays as it was. Also in a read-only transaction: the one case in which it fails.
//   kFailedPrecondition  one of the repositories has staged changes, or a configuration that includes other files.
//   kInvalidArgument     no repository is named.
//   kUnimplemented       the store is on no disk.
//
// Errors of Transaction::Capture
//   kFailedPrecondition  a child left what cannot be part of a transaction: the list is in ForeignChangesOf()
//                        (txn/capture.h); an object that something names is nowhere; a new ref value that UpdateRef would
//                        refuse; captured already. The directories stay: they may be put in order and captured again.
//   kAborted             the snapshot was extended since, and what the child changed was written meanwhile.
//   kPermissionDenied    a read-only transaction.
class WriteSnapshot {
 public:
  virtual ~WriteSnapshot() = default;

  // The LSN that the directories show.
  virtual wal::Lsn lsn() const = 0;
  // In the order of ids, each once.
  virtual const std::vector<RepositoryId>& repositories() const = 0;

  // A bare repository, for GIT_DIR. Requires one of repositories().
  virtual const std::string& absolute_path(const RepositoryId& id) const = 0;
  virtual const storage::StorePath& path(const RepositoryId& id) const = 0;

  // A Git command in that directory: closed environment, the store's LOCK inherited. The caller may add to it, and may
  // start it by itself; then the transaction can be ended for lying idle meanwhile, which only Run() prevents.
  virtual objects::GitCommand Command(const RepositoryId& id, std::vector<std::string> arguments) const = 0;
  // Runs such a command to its end; `input` is its standard input. Several may run, one after the other.
  //
  // Errors: those of objects::RunGit; kFailedPrecondition when the directory's configuration includes other files (a
  // child before may have written it); kInvalidArgument for a command in another directory.
  virtual absl::StatusOr<objects::GitResult> Run(const objects::GitCommand& command, std::string input = "",
                                                 const objects::RunLimits& limits = {}) = 0;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_WRITE_SNAPSHOT_H_
