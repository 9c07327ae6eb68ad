// A store opened for the length of one command, and the clean close behind it.
#ifndef REPOTXN_CLI_SESSION_H_
#define REPOTXN_CLI_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/exit_code.h"
#include "storage/file_system.h"
#include "txn/store.h"

namespace repotxn::cli {

// What a command came to: an exit code, and the reason when it is no answer.
struct Outcome {
  ExitCode code = ExitCode::kOk;
  absl::Status status;

  static Outcome CannotOpen(absl::Status status) {
    return {ExitCode::kCannotOpen, std::move(status)};
  }
  static Outcome Refused(absl::Status status) { return {ExitCode::kRefused, std::move(status)}; }
};

// Absolute form of what was typed behind --store.
std::string AbsoluteStorePath(const std::string& typed);

// File system of a store's root. kNotFound when the directory is absent or holds no store (no STORE
// file).
absl::StatusOr<std::unique_ptr<storage::FileSystem>> OpenRoot(const std::string& root);

// Takes LOCK as opening does, for reading the files of a store that stays closed. kUnavailable names
// the holder.
absl::StatusOr<std::unique_ptr<storage::FileLock>> TakeLock(storage::FileSystem& fs);

// Opens the store, runs `body`, closes. An error of closing wins over a success of `body`: the work
// is in the log, but the store is not at rest.
Outcome WithStore(const std::string& root, const txn::StoreOptions& options,
                  absl::FunctionRef<Outcome(txn::Store&)> body);

// All repositories, sorted by path.
absl::StatusOr<std::vector<txn::RepositoryInfo>> AllRepositories(txn::Store& store);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_SESSION_H_
