// Where committed changes are told outside the store, and how one entry looks there.
//
// JSON of an entry, one object without a newline:
//   {"incarnation": "<hex>", "lsn": 7, "transaction_id": "<hex>", "time": "2026-01-02T03:04:05.000000006Z",
//    "pusher": "alice", "origin": "192.0.2.7", "push_options": ["..."],
//    "changes": [{"repository_id": "<hex>", "repository": "group/name", "ref": "refs/heads/main",
//                 "old": "<hex>", "new": "<hex>"}]}
// `old` and `new` are null for an absent ref and "ref: <target>" for a symbolic one. `repository` is the path when the entry
// is told, empty when the repository is gone by then; `repository_id` never changes its meaning. Bytes that are no UTF-8
// are replaced, and a field "<name>_hex" has them all. (incarnation, lsn) names an entry for ever: whoever receives it
// twice knows it by that.
#ifndef REPOTXN_DAEMON_EVENT_SINK_H_
#define REPOTXN_DAEMON_EVENT_SINK_H_

#include <string>

#include "absl/status/status.h"
#include "storage/id128.h"
#include "txn/consumers.h"

namespace repotxn::daemon {

// One thread delivers; Cancel() may come from another.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // OK: it is where it belongs and the entry may be acknowledged. Any error: not known to be there; it comes again.
  virtual absl::Status Deliver(const txn::ConsumedEntry& entry) = 0;
  // Ends a delivery that is under way, with an error, soon.
  virtual void Cancel() {}
};

std::string EventJson(const StoreId& incarnation, const txn::ConsumedEntry& entry);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_EVENT_SINK_H_
