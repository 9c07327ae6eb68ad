// Marks the thread that is inside the critical section of a commit.
//
// Inside it nothing may call the disk or start a child: the file systems and ChildProcess assert that with
// REPOTXN_OUTSIDE_CRITICAL_SECTION() (test builds; nothing in release).
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_CRITICAL_SECTION_H_
#define REPOTXN_STORAGE_CRITICAL_SECTION_H_

#include "storage/check.h"

namespace repotxn::storage {

class CriticalSection {
 public:
  CriticalSection() { inside_ = true; }
  ~CriticalSection() { inside_ = false; }
  CriticalSection(const CriticalSection&) = delete;
  CriticalSection& operator=(const CriticalSection&) = delete;

  static bool IsInside() { return inside_; }

 private:
  static inline thread_local bool inside_ = false;
};

}  // namespace repotxn::storage

#define REPOTXN_OUTSIDE_CRITICAL_SECTION() \
  REPOTXN_DCHECK(!::repotxn::storage::CriticalSection::IsInside())

#endif  // REPOTXN_STORAGE_CRITICAL_SECTION_H_
