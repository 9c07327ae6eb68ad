// Serves `git push`: the advertisement of refs, and a push as one transaction.
//
// Steps of a push
//   1. The commands are parsed from the body. Begin; names, policy and old values are judged at S.
//      A refused command gets its reason and the others go on; with `atomic` all are refused. When
//      none is left, the pack is not even read.
//   2. One `git index-pack` takes the pack from the connection as it comes, in a staging directory;
//      it proves the links of what it holds.
//   3. Only if the repository has hooks: the directory is completed with refs, `pre-receive` and
//      `update` run there, once, whatever step 5 has to repeat.
//   4. The pack is linked into the payload and synced.
//   5. Store::Run commits. On a conflict its body judges everything again at a new S: a ref whose old
//      value no longer holds is refused, with what it raced with; the others commit.
//   6. `post-receive` runs in a read snapshot and changes nothing.
// If we die before the commit is durable nothing has happened; after it everything has, and the
// client, which sees a broken connection, finds its refs changed.
//
// The advertisement ends with `.have` lines for the tips of the repositories that this one borrows from
// (borrowed_tips.h).
//
// An absent repository shows as empty under create-on-push, and the first push creates it; of two
// first pushes the loser replays into the winner's repository.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_RECEIVE_PACK_H_
#define REPOTXN_DAEMON_RECEIVE_PACK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/http_message.h"
#include "daemon/push_request.h"
#include "daemon/recent_changes.h"
#include "txn/repository_path.h"
#include "txn/store.h"

namespace repotxn::daemon {

struct ReceivePackOptions {
  bool create_on_push = false;
  PushRequestLimits request_limits;
  int64_t pack_bytes_max = int64_t{4} << 30;
  // Bound of one hook.
  absl::Duration hook_timeout = absl::Minutes(5);
  // A waiting client gets an empty frame after so long.
  absl::Duration keep_alive_interval = absl::Seconds(5);
  // Replays of a commit that met another; with the pauses of Store::Run a second and a half at most.
  int retries_max = 7;
};

class ReceivePack {
 public:
  // `store` must outlive it.
  ReceivePack(txn::Store* store, const ReceivePackOptions& options)
      : store_(store), options_(options) {}

  // Answers GET info/refs. 404 when the repository is absent and not created by pushes.
  void Advertise(const txn::RepositoryPath& path, const HttpRequest& request, ResponseWriter& out);
  // Answers POST git-receive-pack. `actor` is who pushes, for the log; may be empty.
  void Push(const txn::RepositoryPath& path, absl::string_view actor, const HttpRequest& request,
            const BodyReader& body, ResponseWriter& out);

 private:
  txn::Store* const store_;
  const ReceivePackOptions options_;
  RecentChanges recent_changes_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_RECEIVE_PACK_H_
