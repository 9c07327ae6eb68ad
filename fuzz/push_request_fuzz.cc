// Any bytes, cut at any place: the parser ends in the same state as in one piece, and a request that
// it accepts keeps the promises of its header.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "daemon/push_request.h"

namespace {

using repotxn::daemon::PushCommand;
using repotxn::daemon::PushRequest;
using repotxn::daemon::PushRequestLimits;
using repotxn::daemon::PushRequestParser;

void Require(bool holds) {
  if (!holds) std::abort();
}

PushRequestLimits SmallLimits() {
  PushRequestLimits limits;
  limits.commands_max = 8;
  limits.shallow_max = 4;
  limits.bytes_max = 4096;
  limits.options_max = 4;
  limits.option_bytes_max = 64;
  return limits;
}

void CheckRequest(const PushRequest& request) {
  const PushRequestLimits limits = SmallLimits();
  Require(request.commands.size() <= limits.commands_max);
  Require(request.shallow.size() <= limits.shallow_max);
  Require(request.options.size() <= limits.options_max);
  Require(request.is_probe() || !request.commands.empty());
  std::set<std::string> names;
  const size_t bytes = repotxn::ObjectIdBytes(request.capabilities.object_format);
  for (const PushCommand& command : request.commands) {
    Require(!command.name.empty() && names.insert(command.name).second);
    Require(command.old_value.bytes().size() == bytes);
    Require(command.new_value.bytes().size() == bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = 1 + data[0] % 29;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  PushRequestParser whole(SmallLimits());
  const absl::Status expected = whole.Feed(bytes);
  if (expected.ok() && whole.is_complete()) CheckRequest(whole.request());

  PushRequestParser cut(SmallLimits());
  absl::Status found;
  size_t at = 0;
  for (; at < bytes.size() && found.ok() && !cut.is_complete(); at += step) {
    found = cut.Feed(absl::string_view(bytes).substr(at, step));
  }
  Require(found.code() == expected.code());
  Require(cut.is_complete() == whole.is_complete());
  if (whole.is_complete()) {
    Require(cut.request().commands == whole.request().commands);
    Require(cut.request().options == whole.request().options);
    const std::string rest = at < bytes.size() ? bytes.substr(at) : "";
    Require(cut.TakePackPrefix() + rest == whole.TakePackPrefix());
  }
  return 0;
}
