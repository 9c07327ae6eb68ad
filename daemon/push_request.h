// What a client asks for in a push, parsed from the bytes of its request.
//
// Order of the frames
//   1. `shallow <id>` lines, none or more: commits that the client has without their parents
//   2. commands `<old id> <new id> <name>`, one or more; the first is followed by NUL and the
//      capabilities that the client chose, separated by blanks
//   3. flush
//   4. with the capability push-options: one option a frame, then flush
//   5. the pack, raw bytes up to the end of the request, unless every command deletes
// A request that is a single flush is the probe that large pushes begin with: it has no commands.
//
// Ids have the length of the format that the capability object-format names (sha1 when absent); the
// capabilities come with the first command, so shallow lines are judged by their own length and
// must agree with it. A name is only bounded here, refs::RefName judges it: a bad name refuses one
// command, not the request. Two commands for one name refuse the request.
//
// Pure and incremental; the result does not depend on how the bytes are cut.
//
// Errors: kInvalidArgument for what breaks the order or the syntax, kResourceExhausted beyond a
// limit; after either the parser takes nothing more.
// Single-threaded.
#ifndef REPOTXN_DAEMON_PUSH_REQUEST_H_
#define REPOTXN_DAEMON_PUSH_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/pkt_line.h"
#include "storage/object_id.h"

namespace repotxn::daemon {

struct PushCommand {
  ObjectId old_value;  // zero: the ref must not exist
  ObjectId new_value;  // zero: delete
  std::string name;    // as sent

  bool is_create() const { return old_value.IsZero(); }
  bool is_delete() const { return new_value.IsZero(); }
  friend bool operator==(const PushCommand&, const PushCommand&) = default;
};

// Which answers the client understands.
struct PushCapabilities {
  bool report_status = false;
  bool report_status_v2 = false;
  bool side_band_64k = false;
  bool quiet = false;
  bool atomic = false;
  bool push_options = false;
  ObjectFormat object_format = ObjectFormat::kSha1;
  std::string agent;

  bool wants_report() const { return report_status || report_status_v2; }
};

struct PushRequest {
  std::vector<ObjectId> shallow;
  std::vector<PushCommand> commands;
  PushCapabilities capabilities;
  std::vector<std::string> options;

  bool is_probe() const { return commands.empty() && shallow.empty(); }
  // Whether a pack follows the commands.
  bool has_pack() const;
};

struct PushRequestLimits {
  size_t commands_max = 100'000;
  size_t shallow_max = 100'000;
  // Bytes of all frames before the pack.
  size_t bytes_max = 64 << 20;
  size_t options_max = 1'000;
  size_t option_bytes_max = 64 << 10;
};

class PushRequestParser {
 public:
  explicit PushRequestParser(const PushRequestLimits& limits = {}) : limits_(limits) {}

  // Takes the next bytes. Once is_complete(), further bytes belong to the pack: do not feed them.
  absl::Status Feed(absl::string_view bytes);
  // The request has ended. kInvalidArgument when it is not complete.
  absl::Status Finish() const;

  // Everything before the pack is known.
  bool is_complete() const { return state_ == State::kComplete; }
  const PushRequest& request() const { return request_; }
  // Bytes that were fed behind the end of the frames: the first bytes of the pack.
  std::string TakePackPrefix() { return decoder_.TakeRest(); }

 private:
  enum class State : uint8_t { kStart, kShallow, kCommands, kOptions, kComplete, kFailed };

  absl::Status Take(const Pkt& pkt);
  absl::Status TakeFlush();
  absl::Status TakeShallow(absl::string_view line);
  absl::Status TakeCommand(absl::string_view line);
  absl::Status TakeOption(absl::string_view line);
  absl::Status TakeCapabilities(absl::string_view list);

  const PushRequestLimits limits_;
  State state_ = State::kStart;
  PktDecoder decoder_;
  PushRequest request_;
  size_t bytes_taken_ = 0;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_PUSH_REQUEST_H_
