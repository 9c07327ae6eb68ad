#include "daemon/push_request.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "refs/ref_name.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

constexpr absl::string_view kShallowPrefix = "shallow ";

absl::Status Malformed(absl::string_view what) { return absl::InvalidArgumentError(what); }
absl::Status TooMuch(absl::string_view what) { return absl::ResourceExhaustedError(what); }

}  // namespace

bool PushRequest::has_pack() const {
  return std::any_of(commands.begin(), commands.end(),
                     [](const PushCommand& command) { return !command.is_delete(); });
}

absl::Status PushRequestParser::Feed(absl::string_view bytes) {
  if (state_ == State::kFailed) return Malformed("the push request was already refused");
  decoder_.Feed(bytes);
  while (!is_complete()) {
    absl::StatusOr<std::optional<Pkt>> pkt = decoder_.Next();
    absl::Status status = pkt.status();
    if (status.ok() && !pkt->has_value()) return absl::OkStatus();
    if (status.ok()) status = Take(**pkt);
    if (!status.ok()) {
      state_ = State::kFailed;
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status PushRequestParser::Finish() const {
  if (is_complete()) return absl::OkStatus();
  return Malformed("the push request ends before its commands do");
}

absl::Status PushRequestParser::Take(const Pkt& pkt) {
  bytes_taken_ += pkt.payload.size() + kPktHeaderBytes;
  if (bytes_taken_ > limits_.bytes_max) return TooMuch("the push request has too many bytes");
  switch (pkt.kind) {
    case PktKind::kFlush:
      return TakeFlush();
    case PktKind::kData:
      break;
    case PktKind::kDelimiter:
    case PktKind::kResponseEnd:
      return Malformed("a push request holds a frame that has no place in it");
  }
  absl::string_view line = pkt.payload;
  if (state_ == State::kOptions) return TakeOption(line);
  if (state_ != State::kCommands && absl::StartsWith(line, kShallowPrefix)) {
    state_ = State::kShallow;
    return TakeShallow(line);
  }
  return TakeCommand(line);
}

absl::Status PushRequestParser::TakeFlush() {
  switch (state_) {
    case State::kStart:  // the probe
      state_ = State::kComplete;
      return absl::OkStatus();
    case State::kCommands:
      state_ = request_.capabilities.push_options ? State::kOptions : State::kComplete;
      return absl::OkStatus();
    case State::kOptions:
      state_ = State::kComplete;
      return absl::OkStatus();
    default:
      return Malformed("a push request has no command");
  }
}

absl::Status PushRequestParser::TakeShallow(absl::string_view line) {
  if (request_.shallow.size() >= limits_.shallow_max) {
    return TooMuch("the push request has too many shallow lines");
  }
  line.remove_prefix(kShallowPrefix.size());
  absl::StatusOr<ObjectId> id = ObjectId::FromHex(absl::StripSuffix(line, "\n"));
  if (!id.ok() || id->IsZero()) return Malformed("malformed shallow line in a push request");
  request_.shallow.push_back(*id);
  return absl::OkStatus();
}

absl::Status PushRequestParser::TakeCommand(absl::string_view line) {
  if (request_.commands.size() >= limits_.commands_max) {
    return TooMuch("the push request has too many commands");
  }
  const size_t nul = line.find('\0');
  if (state_ != State::kCommands) {
    state_ = State::kCommands;
    if (nul != absl::string_view::npos) {
      REPOTXN_RETURN_IF_ERROR(TakeCapabilities(line.substr(nul + 1)));
    }
  } else if (nul != absl::string_view::npos) {
    return Malformed("capabilities stand behind a later command of a push request");
  }
  line = absl::StripSuffix(line.substr(0, nul), "\n");

  const ObjectFormat format = request_.capabilities.object_format;
  const size_t hex = 2 * ObjectIdBytes(format);
  if (line.size() <= 2 * hex + 2 || line[hex] != ' ' || line[2 * hex + 1] != ' ') {
    return Malformed("malformed command in a push request");
  }
  absl::StatusOr<ObjectId> old_value = ObjectId::FromHex(line.substr(0, hex), format);
  absl::StatusOr<ObjectId> new_value = ObjectId::FromHex(line.substr(hex + 1, hex), format);
  if (!old_value.ok() || !new_value.ok()) return Malformed("malformed command in a push request");
  const absl::string_view name = line.substr(2 * hex + 2);
  if (name.size() > refs::kRefNameBytesMax) return TooMuch("a ref name of a push is too long");
  PushCommand command{*old_value, *new_value, std::string(name.data(), name.size())};
  if (!names_.insert(command.name).second) {
    return Malformed("two commands of a push request are for one ref");
  }
  request_.commands.push_back(std::move(command));
  return absl::OkStatus();
}

absl::Status PushRequestParser::TakeOption(absl::string_view line) {
  line = absl::StripSuffix(line, "\n");
  if (request_.options.size() >= limits_.options_max || line.size() > limits_.option_bytes_max) {
    return TooMuch("the push options are too many or too long");
  }
  if (line.find('\0') != absl::string_view::npos) return Malformed("a push option holds a NUL");
  request_.options.emplace_back(line.data(), line.size());
  return absl::OkStatus();
}

absl::Status PushRequestParser::TakeCapabilities(absl::string_view list) {
  PushCapabilities& known = request_.capabilities;
  for (absl::string_view word : absl::StrSplit(absl::StripSuffix(list, "\n"), ' ')) {
    if (word == "report-status") known.report_status = true;
    if (word == "report-status-v2") known.report_status_v2 = true;
    if (word == "side-band-64k") known.side_band_64k = true;
    if (word == "quiet") known.quiet = true;
    if (word == "atomic") known.atomic = true;
    if (word == "push-options") known.push_options = true;
    if (absl::ConsumePrefix(&word, "agent=")) known.agent = std::string(word.data(), word.size());
    if (absl::ConsumePrefix(&word, "object-format=")) {
      absl::StatusOr<ObjectFormat> format = ParseObjectFormat(word);
      if (!format.ok()) return Malformed("unknown object format in a push request");
      known.object_format = *format;
    }
  }
  const size_t bytes = ObjectIdBytes(known.object_format);
  for (const ObjectId& id : request_.shallow) {
    if (id.bytes().size() != bytes) return Malformed("malformed shallow line in a push request");
  }
  return absl::OkStatus();
}

}  // namespace repotxn::daemon
