// The Git server: a store, its protocols, and the routes to them.
//
//   /<path>.git/info/refs?service=git-upload-pack|git-receive-pack
//   /<path>.git/git-upload-pack, /<path>.git/git-receive-pack      the suffix .git may be left out
//   /api/...                                                       rest.h
//   /healthz   the process lives      /readyz   the store takes writes      /metrics
//
// Reading needs the right to read, pushing and creating the right to write; /healthz and /readyz
// need none.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_SERVER_H_
#define REPOTXN_DAEMON_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/server_options.h"

namespace repotxn::daemon {

class Server {
 public:
  // Opens the store (made when absent) and listens.
  //
  // Errors
  //   kFailedPrecondition  the address is reachable from elsewhere and there is no token file.
  //   kUnavailable         the address is in use, or another process holds the store.
  // and those of the store and of the token file.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // As Stop().
  ~Server();

  // "http://HOST:PORT" with the port that was picked.
  std::string url() const;

  // Finishes running requests, bounded by stop_grace, then closes the store. Idempotent; not OK when
  // the store could not be closed cleanly.
  absl::Status Stop();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// main() of repotxnd: serves until SIGTERM or SIGINT. Returns the exit code: 0 after a clean stop,
// 1 when something failed, 2 for a wrong command line.
int RunDaemon(int argc, char** argv);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_SERVER_H_
