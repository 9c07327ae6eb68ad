// The command line of repotxnd.
//
//   repotxnd serve [--config FILE] --store DIR --listen HOST:PORT [--create-on-push]
//       [--token-file FILE] [--events-file FILE] [--webhook URL] [limits]
//
// Every option but --config may stand in the file instead, without its dashes (config_file.h); what
// the command line says wins. A key that is no option is an error with the number of its line.
//
// Thread-compatible.
#ifndef REPOTXN_DAEMON_SERVER_OPTIONS_H_
#define REPOTXN_DAEMON_SERVER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace repotxn::daemon {

struct ServerOptions {
  std::string store;  // absolute once the server has it
  std::string host = "127.0.0.1";
  int port = 0;
  bool create_on_push = false;
  std::string token_file;
  // Where committed ref changes are told; empty: nowhere.
  std::string events_file;
  std::string webhook;  // http://HOST[:PORT][/PATH]

  int64_t body_bytes_max = int64_t{4} << 30;
  absl::Duration request_timeout = absl::Hours(1);
  absl::Duration idle_timeout = absl::Seconds(30);
  absl::Duration hook_timeout = absl::Minutes(5);
  absl::Duration pin_duration = absl::Seconds(60);
  // How long running requests may go on after a signal.
  absl::Duration stop_grace = absl::Seconds(30);
  int connections_max = 256;
  int pushes_max = 64;   // at once; more get 503
  int fetches_max = 64;  // at once; more get 503
};

struct CommandLine {
  enum class Action : uint8_t { kServe, kHelp, kVersion };
  Action action = Action::kServe;
  ServerOptions options;
};

// Gives the content of a file.
using FileReader = std::function<absl::StatusOr<std::string>(const std::string& path)>;

// Words after the program's name. kInvalidArgument with a sentence for people; kNotFound when the
// configuration file cannot be read.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& words,
                                             const FileReader& read_file);
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& words);

// HOST:PORT, [IPv6]:PORT; port 0 to 65535.
absl::Status ParseListenAddress(absl::string_view text, std::string* host, int* port);
// As it stands in a URL: brackets around IPv6.
std::string HostForUrl(absl::string_view host);

std::string HelpText();
std::string VersionText();

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_SERVER_OPTIONS_H_
