// Writes diagnostic lines for people.
//
// One line a call, to standard error by default. Callers escape what users chose; newlines and
// other control bytes are escaped here as a second line of defence, so that a ref name cannot forge
// a line.
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_LOG_H_
#define REPOTXN_STORAGE_LOG_H_

#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"

namespace repotxn::storage {

enum class LogLevel : uint8_t { kInfo, kWarning, kError, kNone };

void LogInfo(absl::string_view message);
void LogWarning(absl::string_view message);
void LogError(absl::string_view message);

// Lines below `level` are dropped; kNone silences all. At first kInfo.
void SetLogLevel(LogLevel level);

// Sends lines to `sink` instead of standard error; an empty function restores it. The sink is
// called under a lock and must not log.
using LogSink = std::function<void(LogLevel level, absl::string_view message)>;
void SetLogSink(LogSink sink);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_LOG_H_
