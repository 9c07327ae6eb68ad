#include "daemon/push_policy.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace repotxn::daemon {

PushPolicy PushPolicy::FromConfig(const GitConfig& config) {
  PushPolicy policy;
  policy.deny_deletes = config.Bool("receive.denydeletes", false);
  policy.deny_non_fast_forwards = config.Bool("receive.denynonfastforwards", false);
  // "warn" and "ignore" allow it; anything else that is no truth value refuses, as by default.
  const std::vector<std::string> current = config.All("receive.denydeletecurrent");
  const bool is_lenient = !current.empty() && (absl::EqualsIgnoreCase(current.back(), "warn") ||
                                               absl::EqualsIgnoreCase(current.back(), "ignore"));
  policy.deny_delete_current = !is_lenient && config.Bool("receive.denydeletecurrent", true);
  policy.fsck_objects =
      config.Bool("receive.fsckobjects", config.Bool("transfer.fsckobjects", false));
  policy.hidden = config.All("transfer.hiderefs");
  for (std::string& pattern : config.All("receive.hiderefs")) {
    policy.hidden.push_back(std::move(pattern));
  }
  return policy;
}

bool PushPolicy::IsHidden(absl::string_view name) const {
  bool is_hidden = false;
  for (const std::string& line : hidden) {
    absl::string_view pattern = line;
    const bool shows = absl::ConsumePrefix(&pattern, "!");
    // '^' matches before namespaces are taken off; there are none here.
    absl::ConsumePrefix(&pattern, "^");
    while (absl::ConsumeSuffix(&pattern, "/")) {
    }
    absl::string_view rest = name;
    if (pattern.empty() || !absl::ConsumePrefix(&rest, pattern)) continue;
    if (rest.empty() || rest.front() == '/') is_hidden = !shows;
  }
  return is_hidden;
}

}  // namespace repotxn::daemon
