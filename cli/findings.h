// What a verification found, in the order in which it looked.
//
// A check that was made is counted even when it found nothing, so that "0 findings" can be told
// from "looked at nothing".
//
// Single-threaded.
#ifndef REPOTXN_CLI_FINDINGS_H_
#define REPOTXN_CLI_FINDINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace repotxn::cli {

// One thing that is not as it should be.
struct Finding {
  std::string check;    // which check: "clean-marker", "log", "catalogue", "fsck", ...
  std::string subject;  // store path, repository path or ref that it is about
  std::string text;     // what was found, for people

  friend bool operator==(const Finding&, const Finding&) = default;
};

class Findings {
 public:
  // Notes that `check` looked at `count` more things.
  void Looked(absl::string_view check, int64_t count = 1);
  void Add(absl::string_view check, absl::string_view subject, absl::string_view text);

  // Something worth knowing that is not wrong; does not count against the store.
  void AddNote(absl::string_view check, absl::string_view subject, absl::string_view text);

  bool empty() const { return findings_.empty(); }
  const std::vector<Finding>& list() const { return findings_; }
  const std::vector<Finding>& notes() const { return notes_; }
  // Things looked at, by check.
  const std::map<std::string, int64_t>& looked() const { return looked_; }

 private:
  std::vector<Finding> findings_;
  std::vector<Finding> notes_;
  std::map<std::string, int64_t> looked_;
};

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_FINDINGS_H_
