// The verbs of `repotxn` that are calls of the administration (admin/admin_api.h): the same on a store
// that is opened for the length of one command (--store) and on a server (--server).
//
// A table: words, operands and options of each verb, the call that it becomes, and which columns of
// the answer people are shown. With --json they get the answer itself.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_CLI_ADMIN_VERBS_H_
#define REPOTXN_CLI_ADMIN_VERBS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "admin/call.h"

namespace repotxn::cli {

// Names a local file whose content stands for the last operand; whoever runs the verb reads it.
inline constexpr absl::string_view kContentOf = "content-of";

// Operands and options of a verb as they were typed, and judged.
struct AdminArguments {
  std::vector<std::string> operands;
  std::map<std::string, std::string> options;  // by name without dashes

  // Empty when absent.
  std::string Operand(size_t index) const;
  std::string Option(const std::string& name) const;
};

struct AdminVerb {
  std::vector<std::string> words;
  // Names for messages. Those that are called PATH, or end in it, are repository paths.
  std::vector<std::string> operands;
  size_t operands_min = 0;
  std::vector<std::string> options;  // without dashes
  absl::StatusOr<admin::Call> (*call)(const AdminArguments& arguments) = nullptr;
  // Of an answer that is a list: its field (or a JSON pointer to it; "tasks" where there is none), and the columns of a
  // line. One that is called path is left out where an item has none.
  std::string list;
  std::vector<std::string> columns;
  // Parameter that asks for the next page; empty when there are no pages.
  std::string page;
  // Field of the answer that people are shown, as its bytes and alone; empty for every field.
  std::string shown = {};
};

const std::vector<AdminVerb>& AdminVerbs();
// The verb that `words` begin with; null when there is none.
const AdminVerb* FindAdminVerb(const std::vector<std::string>& words);
// Whether some verb takes the option, named without dashes.
bool IsAdminOption(const std::string& name);

// Judges operands and options. kInvalidArgument with a sentence for people.
absl::StatusOr<AdminArguments> ReadAdminArguments(const AdminVerb& verb,
                                                  const std::vector<std::string>& words,
                                                  const std::map<std::string, std::string>& options);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_ADMIN_VERBS_H_
