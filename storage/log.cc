#include "storage/log.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "storage/sync.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace repotxn::storage {
namespace {

struct Destination {
  std::atomic<LogLevel> level{LogLevel::kInfo};
  Mutex mutex{MutexRank::kInnermost};
  LogSink sink ABSL_GUARDED_BY(mutex);
  // A logger of our own: the embedder's default one keeps its settings.
  std::shared_ptr<spdlog::logger> logger = std::make_shared<spdlog::logger>(
      "repotxn", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
};

Destination& GlobalDestination() {
  static Destination* destination = new Destination;
  return *destination;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

// Escapes control bytes; what is printable, quotes and UTF-8 included, stays readable.
std::string OneLine(absl::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += absl::CHexEscape(absl::string_view(&c, 1));
    } else {
      line += c;
    }
  }
  return line;
}

void Log(LogLevel level, absl::string_view message) {
  Destination& destination = GlobalDestination();
  if (level < destination.level.load(std::memory_order_relaxed)) return;
  const std::string line = OneLine(message);
  {
    const MutexLock lock(&destination.mutex);
    if (destination.sink) {
      destination.sink(level, line);
      return;
    }
  }
  destination.logger->log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void LogInfo(absl::string_view message) { Log(LogLevel::kInfo, message); }
void LogWarning(absl::string_view message) { Log(LogLevel::kWarning, message); }
void LogError(absl::string_view message) { Log(LogLevel::kError, message); }

void SetLogLevel(LogLevel level) {
  GlobalDestination().level.store(level, std::memory_order_relaxed);
}

void SetLogSink(LogSink sink) {
  Destination& destination = GlobalDestination();
  const MutexLock lock(&destination.mutex);
  destination.sink = std::move(sink);
}

}  // namespace repotxn::storage
