// Exit codes of the operator's command; scripts may rely on them.
#ifndef REPOTXN_CLI_EXIT_CODE_H_
#define REPOTXN_CLI_EXIT_CODE_H_

#include <cstdint>

namespace repotxn::cli {

enum class ExitCode : uint8_t {
  kOk = 0,
  // A check ran to its end and found something wrong; the findings are in the output.
  kFoundWrong = 1,
  // The command line makes no sense; nothing was touched.
  kUsage = 2,
  // The store cannot be opened: not there, in use by another process, damaged, or of a newer
  // format. Or the server gives no answer.
  kCannotOpen = 3,
  // The store is fine and refused the command: already exists, not found, no space, ...
  kRefused = 4,
  // Whether the write was done is not known yet; ask with `outcome`, or repeat it with its request id.
  kUnknown = 5,
};

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_EXIT_CODE_H_
