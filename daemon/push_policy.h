// What a repository's own configuration allows in a push.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_DAEMON_PUSH_POLICY_H_
#define REPOTXN_DAEMON_PUSH_POLICY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/git_config.h"

namespace repotxn::daemon {

struct PushPolicy {
  bool deny_deletes = false;           // receive.denyDeletes
  bool deny_non_fast_forwards = false;  // receive.denyNonFastForwards
  bool deny_delete_current = true;     // receive.denyDeleteCurrent; Git refuses by default
  bool fsck_objects = false;           // receive.fsckObjects, else transfer.fsckObjects
  // transfer.hideRefs, then receive.hideRefs; '!' shows again what an earlier line hid.
  std::vector<std::string> hidden;

  static PushPolicy FromConfig(const GitConfig& config);

  // The last pattern that is the name or a directory of it decides.
  bool IsHidden(absl::string_view name) const;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_PUSH_POLICY_H_
