// Where a call of the administration goes: into a store that this process has open, or to a server.
//
// Single-threaded.
#ifndef REPOTXN_CLI_BACKEND_H_
#define REPOTXN_CLI_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "admin/admin_api.h"
#include "admin/call.h"
#include "txn/store.h"

namespace repotxn::cli {

class Backend {
 public:
  virtual ~Backend() = default;
  // The answer, refusals included. kUnavailable: none came; the call may have been done all the same,
  // so repeat a write with the same request id, or ask for its outcome.
  virtual absl::StatusOr<admin::Reply> Send(const admin::Call& call) = 0;
};

class StoreBackend final : public Backend {
 public:
  // `store` must outlive it.
  explicit StoreBackend(txn::Store* store) : api_(store) {}
  absl::StatusOr<admin::Reply> Send(const admin::Call& call) override { return api_.Handle(call); }

 private:
  const admin::AdminApi api_;
};

// A server at `url` ("http://host:port" or "https://host:port"). `token_file`, when not empty, is a
// file whose first word is the token that is sent.
//
// Errors
//   kInvalidArgument  no such URL, or no token in the file.
//   kNotFound         the file cannot be read.
absl::StatusOr<std::unique_ptr<Backend>> ConnectToServer(const std::string& url,
                                                         const std::string& token_file);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_BACKEND_H_
