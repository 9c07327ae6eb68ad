// The answer to a push: one line for the pack, one for each ref, and explanations for people.
//
// Reasons are those of stock Git where it has one, because tools and people recognise them; what
// the refused ref raced with goes behind it, and to band 2 in a sentence. A client crashes on a
// refusal without reason, and prints whatever bytes it gets: a reason is never empty and holds no
// control character.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_DAEMON_PUSH_REPORT_H_
#define REPOTXN_DAEMON_PUSH_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "admin/clean_text.h"
#include "daemon/push_request.h"

namespace repotxn::daemon {

// Reasons that stock Git gives.
namespace reason {
inline constexpr absl::string_view kUpdateFailed = "failed to update ref";
inline constexpr absl::string_view kMissingObjects = "missing necessary objects";
inline constexpr absl::string_view kBadName = "funny refname";
inline constexpr absl::string_view kHidden = "deny updating a hidden ref";
inline constexpr absl::string_view kDeletionProhibited = "deletion prohibited";
inline constexpr absl::string_view kCurrentBranch = "deletion of the current branch prohibited";
inline constexpr absl::string_view kNonFastForward = "non-fast-forward";
inline constexpr absl::string_view kPreReceiveDeclined = "pre-receive hook declined";
inline constexpr absl::string_view kUpdateHookDeclined = "hook declined";
inline constexpr absl::string_view kAtomicFailed = "atomic transaction failed";
inline constexpr absl::string_view kShallowNotAllowed = "shallow update not allowed";
inline constexpr absl::string_view kUnpackerError = "unpacker error";
}  // namespace reason

// What became of one command.
struct RefReport {
  std::string name;
  std::string refusal;  // empty: done
  // Sentence for people on band 2, without the newline; may be empty.
  std::string detail;

  bool ok() const { return refusal.empty(); }
};

struct PushReport {
  std::string unpack_error;  // empty: "unpack ok"
  std::vector<RefReport> refs;

  // Refuses every command that is not refused yet.
  void RefuseAll(absl::string_view why);
  bool HasRefusal() const;
};

using admin::CleanLine;
using admin::CleanText;

// Body of the answer: band-2 details (with side bands), then the report as the client asked for
// it, then the final flush. Empty for a client that wants no report and has no side bands.
std::string EncodePushReport(const PushReport& report, const PushCapabilities& capabilities);

// One sentence on band 3: the client shows it and gives up. Only with side bands.
std::string EncodeFatal(absl::string_view text);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_PUSH_REPORT_H_
