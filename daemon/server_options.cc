#include "daemon/server_options.h"

#include <cstddef>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/config_file.h"
#include "daemon/webhook.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

// The version of project() in CMakeLists.txt.
constexpr absl::string_view kVersion = "0.1.0";
constexpr absl::string_view kConfigFlag = "--config";
constexpr absl::string_view kListenFlag = "--listen";
constexpr absl::string_view kCreateFlag = "--create-on-push";

absl::Status BadValue(absl::string_view flag, absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " takes ", want));
}

absl::Status SetInt(absl::string_view flag, const std::string& value, int min, int max, int* out) {
  int number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < min || number > max) {
    return BadValue(flag, absl::StrCat("a number from ", min, " to ", max));
  }
  *out = number;
  return absl::OkStatus();
}

absl::Status SetBytes(absl::string_view flag, const std::string& value, int64_t* out) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 1) {
    return BadValue(flag, "a positive number of bytes");
  }
  *out = number;
  return absl::OkStatus();
}

// "30s", "5m", "500ms"; a bare number is seconds.
absl::Status SetDuration(absl::string_view flag, const std::string& value, absl::Duration* out) {
  absl::Duration duration;
  int64_t seconds = 0;
  if (absl::SimpleAtoi(value, &seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(value, &duration)) {
    return BadValue(flag, "a time such as 30s or 5m");
  }
  if (duration <= absl::ZeroDuration() || duration > absl::Hours(24 * 30)) {
    return BadValue(flag, "a time above zero and of at most 30 days");
  }
  *out = duration;
  return absl::OkStatus();
}

// Sets the option that `flag` names. kNotFound when there is none.
absl::Status SetFlag(absl::string_view flag, const std::string& value, ServerOptions* options) {
  constexpr int kManyMax = 10'000;
  if (flag == "--store") {
    if (value.empty()) return BadValue(flag, "a directory");
    options->store = value;
    return absl::OkStatus();
  }
  if (flag == kCreateFlag) {
    if (value != "true" && value != "false") return BadValue(flag, "true or false");
    options->create_on_push = value == "true";
    return absl::OkStatus();
  }
  if (flag == kListenFlag) return ParseListenAddress(value, &options->host, &options->port);
  if (flag == "--token-file") {
    if (value.empty()) return BadValue(flag, "a file");
    options->token_file = value;
    return absl::OkStatus();
  }
  if (flag == "--events-file") {
    if (value.empty() || value.back() == '/') return BadValue(flag, "a file");
    options->events_file = value;
    return absl::OkStatus();
  }
  if (flag == "--webhook") {
    options->webhook = value;
    return ParseWebhookUrl(value).status();
  }
  if (flag == "--max-body-bytes") return SetBytes(flag, value, &options->body_bytes_max);
  if (flag == "--request-timeout") return SetDuration(flag, value, &options->request_timeout);
  if (flag == "--idle-timeout") return SetDuration(flag, value, &options->idle_timeout);
  if (flag == "--hook-timeout") return SetDuration(flag, value, &options->hook_timeout);
  if (flag == "--pin-time") return SetDuration(flag, value, &options->pin_duration);
  if (flag == "--stop-grace") return SetDuration(flag, value, &options->stop_grace);
  if (flag == "--max-connections") {
    return SetInt(flag, value, 1, kManyMax, &options->connections_max);
  }
  if (flag == "--concurrent-pushes") return SetInt(flag, value, 1, kManyMax, &options->pushes_max);
  if (flag == "--concurrent-fetches") {
    return SetInt(flag, value, 1, kManyMax, &options->fetches_max);
  }
  return absl::NotFoundError(flag);
}

struct Option {
  std::string flag;
  std::string value;
};

bool IsKnown(const std::string& flag) {
  ServerOptions ignored;
  return flag == kConfigFlag || !absl::IsNotFound(SetFlag(flag, "", &ignored));
}

// The words behind the command, in pairs; a switch gets the value "true".
absl::StatusOr<std::vector<Option>> ReadOptions(const std::vector<std::string>& words) {
  std::vector<Option> options;
  for (size_t i = 1; i < words.size(); ++i) {
    Option option{words[i], ""};
    if (option.flag == kCreateFlag) {
      options.push_back({option.flag, "true"});
      continue;
    }
    const size_t equals = option.flag.find('=');
    const bool is_joined = absl::StartsWith(option.flag, "--") && equals != std::string::npos;
    if (is_joined) {
      option.value = option.flag.substr(equals + 1);
      option.flag.resize(equals);
    }
    if (!IsKnown(option.flag)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option ", option.flag, " (see --help)"));
    }
    if (!is_joined) {
      if (++i == words.size()) {
        return absl::InvalidArgumentError(absl::StrCat(option.flag, " needs a value"));
      }
      option.value = words[i];
    }
    options.push_back(std::move(option));
  }
  return options;
}

absl::Status ApplyConfig(absl::string_view text, ServerOptions* options, bool* has_listen) {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<Setting> settings, ParseConfig(text));
  for (const Setting& setting : settings) {
    const std::string flag = absl::StrCat("--", setting.key);
    const absl::Status status = SetFlag(flag, setting.value, options);
    if (absl::IsNotFound(status)) {
      return ConfigError(setting.line, absl::StrCat("unknown key ", setting.key));
    }
    if (!status.ok()) return ConfigError(setting.line, status.message());
    *has_listen |= flag == kListenFlag;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseListenAddress(absl::string_view text, std::string* host, int* port) {
  const absl::Status fault = BadValue("--listen", "HOST:PORT or [IPv6]:PORT");
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return fault;
  absl::string_view name = text.substr(0, colon);
  const absl::string_view digits = text.substr(colon + 1);
  if (absl::ConsumePrefix(&name, "[")) {
    if (!absl::ConsumeSuffix(&name, "]") || !absl::StrContains(name, ':')) return fault;
  } else if (absl::StrContains(name, ':')) {
    return fault;
  }
  int number = 0;
  const bool is_number = digits.find_first_not_of("0123456789") == absl::string_view::npos &&
                         absl::SimpleAtoi(digits, &number);
  if (name.empty() || !is_number || number > 65535) return fault;
  *host = std::string(name.data(), name.size());
  *port = number;
  return absl::OkStatus();
}

std::string HostForUrl(absl::string_view host) {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]")
                                      : std::string(host.data(), host.size());
}

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& words,
                                             const FileReader& read_file) {
  CommandLine line;
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") line.action = CommandLine::Action::kHelp;
    if (word == "--version") line.action = CommandLine::Action::kVersion;
    if (line.action != CommandLine::Action::kServe) return line;
  }
  if (words.empty() || words[0] != "serve") {
    return absl::InvalidArgumentError("the first word is a command: serve (see --help)");
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<Option> options, ReadOptions(words));
  bool has_listen = false;
  for (const Option& option : options) {
    if (option.flag != kConfigFlag) continue;
    REPOTXN_ASSIGN_OR_RETURN(const std::string text, read_file(option.value));
    REPOTXN_RETURN_IF_ERROR(ApplyConfig(text, &line.options, &has_listen));
  }
  for (const Option& option : options) {
    if (option.flag == kConfigFlag) continue;
    REPOTXN_RETURN_IF_ERROR(SetFlag(option.flag, option.value, &line.options));
    has_listen |= option.flag == kListenFlag;
  }
  if (line.options.store.empty()) return absl::InvalidArgumentError("serve needs --store DIR");
  if (!has_listen) return absl::InvalidArgumentError("serve needs --listen HOST:PORT");
  return line;
}

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& words) {
  return ParseCommandLine(words, [](const std::string& path) -> absl::StatusOr<std::string> {
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    // An empty file cannot be copied, and is none that anybody means.
    if (!stream || !(text << stream.rdbuf())) {
      return absl::NotFoundError("the configuration file cannot be read, or is empty");
    }
    return text.str();
  });
}

std::string HelpText() {
  return R"(repotxnd: a Git server in which every push is a transaction.

usage: repotxnd serve --store DIR --listen HOST:PORT [options]
       repotxnd --help | --version

  --config FILE             lines `key = value`: the options below without their dashes; what the
                            command line says wins
  --store DIR               root directory of the store; made when absent
  --listen HOST:PORT        address; [::1]:8080 for IPv6, port 0 picks a free one
  --create-on-push          a push to an absent repository creates it
  --token-file FILE         lines `token [name] [ro|rw]`; without it everybody may do
                            everything, and only loopback addresses are listened on
  --events-file FILE        append a line of JSON for every push to FILE
  --webhook URL             POST the same to http://HOST[:PORT][/PATH], in order, until it answers 2xx

limits
  --max-body-bytes N        bytes of one request, decompressed (4 GiB)
  --request-timeout TIME    one request from its first byte to its last (1h)
  --idle-timeout TIME       without a byte in either direction (30s)
  --hook-timeout TIME       one hook (5m)
  --pin-time TIME           how long what a client was shown stays fetchable (60s)
  --stop-grace TIME         running requests after a signal (30s)
  --max-connections N       connections served at once (256)
  --concurrent-pushes N     pushes at once, more get 503 (64)
  --concurrent-fetches N    fetches at once, more get 503 (64)

It prints `listening on http://HOST:PORT` when it is ready, and stops on SIGTERM or SIGINT.
)";
}

std::string VersionText() { return absl::StrCat("repotxnd ", kVersion, "\n"); }

}  // namespace repotxn::daemon
