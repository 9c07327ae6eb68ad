#include "cli/session.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "storage/posix_file_system.h"
#include "storage/status_macros.h"
#include "storage/store_path.h"
#include "txn/layout.h"

namespace repotxn::cli {
namespace {

constexpr int kPage = 1000;

}  // namespace

std::string AbsoluteStorePath(const std::string& typed) {
  if (!typed.empty() && typed[0] == '/') return typed;
  const std::unique_ptr<char, decltype(&std::free)> here(realpath(".", nullptr), &std::free);
  return here == nullptr ? typed : absl::StrCat(here.get(), "/", typed);
}

absl::StatusOr<std::unique_ptr<storage::FileSystem>> OpenRoot(const std::string& root) {
  REPOTXN_ASSIGN_OR_RETURN(
      auto fs, storage::OpenPosixFileSystem(absl::string_view(root.data(), root.size())));
  REPOTXN_ASSIGN_OR_RETURN(const bool is_store, storage::Exists(*fs, txn::layout::StoreFile()));
  if (!is_store) return absl::NotFoundError("no store there");
  return fs;
}

absl::StatusOr<std::unique_ptr<storage::FileLock>> TakeLock(storage::FileSystem& fs) {
  const storage::StorePath path = txn::layout::LockFile();
  auto lock = fs.Lock(path, "repotxn");
  if (!absl::IsUnavailable(lock.status())) return lock;
  const auto holder = storage::ReadFile(fs, path, 4096);
  const absl::string_view note =
      holder.ok() ? absl::string_view(holder->data(), holder->size()) : "";
  return absl::UnavailableError(
      absl::StrCat("the store is in use by another process: ", absl::StripAsciiWhitespace(note)));
}

Outcome WithStore(const std::string& root, const txn::StoreOptions& options,
                  absl::FunctionRef<Outcome(txn::Store&)> body) {
  auto store = txn::Store::Open(root, options);
  if (!store.ok()) return Outcome::CannotOpen(store.status());
  Outcome outcome = body(**store);
  const absl::Status closed = (*store)->Close();
  if (!closed.ok() && outcome.status.ok()) {
    return Outcome::Refused(
        absl::Status(closed.code(), absl::StrCat("close the store: ", closed.message())));
  }
  return outcome;
}

absl::StatusOr<std::vector<txn::RepositoryInfo>> AllRepositories(txn::Store& store) {
  std::vector<txn::RepositoryInfo> all;
  while (true) {
    const std::string after = all.empty() ? "" : all.back().path;
    REPOTXN_ASSIGN_OR_RETURN(
        auto page,
        store.ListRepositories("", absl::string_view(after.data(), after.size()), kPage));
    if (page.empty()) return all;
    for (txn::RepositoryInfo& row : page) all.push_back(std::move(row));
  }
}

}  // namespace repotxn::cli
