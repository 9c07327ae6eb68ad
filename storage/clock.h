// Time as an argument, so that tests own it.
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_CLOCK_H_
#define REPOTXN_STORAGE_CLOCK_H_

#include "absl/time/time.h"

namespace repotxn::storage {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time, for records that people read. May jump.
  virtual absl::Time Now() = 0;
  // Never goes back; only differences mean anything. For deadlines and periods.
  virtual absl::Duration Monotonic() = 0;

  // The machine's clock. Lives for ever.
  static Clock* System();
};

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_CLOCK_H_
