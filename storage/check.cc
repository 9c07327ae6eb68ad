#include "storage/check.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace repotxn {
namespace {

struct Marks {
  std::mutex mutex;
  // Looked up without a copy of the name: code that must not allocate is probed too.
  std::map<std::string, int64_t, std::less<>> probes;
  std::set<std::string, std::less<>> planted;
};

Marks& GlobalMarks() {
  static Marks* marks = new Marks;
  return *marks;
}

}  // namespace

namespace internal {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

bool IsPlanted(absl::string_view name) {
  Marks& marks = GlobalMarks();
  const std::lock_guard<std::mutex> lock(marks.mutex);
  return marks.planted.find(name) != marks.planted.end();
}

void CountProbe(absl::string_view name) {
  Marks& marks = GlobalMarks();
  const std::lock_guard<std::mutex> lock(marks.mutex);
  const auto it = marks.probes.find(name);
  if (it != marks.probes.end()) {
    ++it->second;
  } else {
    marks.probes.emplace(std::string(name), 1);
  }
}

}  // namespace internal

int64_t ProbeCount(absl::string_view name) {
  Marks& marks = GlobalMarks();
  const std::lock_guard<std::mutex> lock(marks.mutex);
  const auto it = marks.probes.find(std::string(name));
  return it == marks.probes.end() ? 0 : it->second;
}

PlantedBug::PlantedBug(absl::string_view name) {
  Marks& marks = GlobalMarks();
  const std::lock_guard<std::mutex> lock(marks.mutex);
  marks.planted.insert(std::string(name));
}

PlantedBug::~PlantedBug() {
  Marks& marks = GlobalMarks();
  const std::lock_guard<std::mutex> lock(marks.mutex);
  marks.planted.clear();
}

}  // namespace repotxn
