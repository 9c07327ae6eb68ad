// Assertions, probes and planted bugs.
//
//   REPOTXN_DCHECK(cond)    hot-path check: aborts in debug, test and fuzz builds, nothing in release.
//   REPOTXN_ALWAYS(cond)    evaluates to cond; aborts in test builds when it is false.
//   REPOTXN_NEVER(cond)     evaluates to cond; aborts in test builds when it is true.
//   REPOTXN_PROBE("name")   counts a rare situation that the tests must have met (test builds only).
//   REPOTXN_PLANT("name")   true when a test has switched the planted bug `name` on; constant false in release, so
//                           that neither the branch nor the name is in the binary.
//
// The library runs inside somebody's daemon: in release a broken invariant poisons the store (its own code does
// that), it never takes the process down.
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_CHECK_H_
#define REPOTXN_STORAGE_CHECK_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace repotxn::internal {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
// Whether planted bug `name` is on. See PlantedBug.
bool IsPlanted(absl::string_view name);
void CountProbe(absl::string_view name);

}  // namespace repotxn::internal

namespace repotxn {

// Number of times that REPOTXN_PROBE(name) was passed in this process; 0 in release builds.
int64_t ProbeCount(absl::string_view name);

// Switches a planted bug on for its lifetime. For tests that prove that a test would notice.
class PlantedBug {
 public:
  explicit PlantedBug(absl::string_view name);
  ~PlantedBug();
  PlantedBug(const PlantedBug&) = delete;
  PlantedBug& operator=(const PlantedBug&) = delete;
};

}  // namespace repotxn

#ifdef REPOTXN_TESTING
#define REPOTXN_DCHECK(cond)                                                \
  ((cond) ? static_cast<void>(0)                                            \
          : ::repotxn::internal::CheckFailed(#cond, __FILE__, __LINE__))
#define REPOTXN_ALWAYS(cond) \
  ((cond) ? true : (::repotxn::internal::CheckFailed(#cond, __FILE__, __LINE__), false))
#define REPOTXN_NEVER(cond) \
  ((cond) ? (::repotxn::internal::CheckFailed("never: " #cond, __FILE__, __LINE__), true) : false)
#define REPOTXN_PROBE(name) ::repotxn::internal::CountProbe(name)
#define REPOTXN_PLANT(name) ::repotxn::internal::IsPlanted(name)
#else
#define REPOTXN_DCHECK(cond) static_cast<void>(0)
#define REPOTXN_ALWAYS(cond) (cond)
#define REPOTXN_NEVER(cond) (cond)
#define REPOTXN_PROBE(name) static_cast<void>(0)
#define REPOTXN_PLANT(name) false
#endif

#endif  // REPOTXN_STORAGE_CHECK_H_
