#include "storage/check.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace repotxn {
namespace {

struct Marks {
  std::mutex mutex;
  std::map<std::string, int64_t> probes;
  std::set<std::string> planted;
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
  return marks.planted.count(std::string(name)) > 0;
}

void CountProbe(absl::string_view name) {
  Marks& marks = GlobalMarks();
  const std::lock_guard<std::mutex> lock(marks.mutex);
  ++marks.probes[std::string(name)];
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
