// The administration of a store: every verb that operators have, by method and path.
//
// The addresses, what they take and what they give stand in docs/operating.md. A path behind
// "/-/" belongs to the repository in front of it: no component of a repository path begins with '-',
// so the two cannot be mixed up. Query parameters and fields that a route does not know are refused.
//
// Errors are answers too (error_json.h); writes are described in commit_reply.h. Asking for an
// outcome that is neither known nor alive fences it, as Store::OutcomeOf() says, and counts as write.
//
// Thread-safe.
#ifndef REPOTXN_ADMIN_ADMIN_API_H_
#define REPOTXN_ADMIN_ADMIN_API_H_

#include "admin/call.h"
#include "txn/store.h"

namespace repotxn::admin {

class AdminApi {
 public:
  // `store` must outlive it.
  explicit AdminApi(txn::Store* store) : store_(store) {}

  Reply Handle(const Call& call) const;
  // Whether it needs the right to write. Looks at method and path only.
  static bool NeedsWrite(const Call& call);

 private:
  txn::Store* const store_;
};

}  // namespace repotxn::admin

#endif  // REPOTXN_ADMIN_ADMIN_API_H_
