// Finds the processes that keep a file open: who holds a store's LOCK.
//
// A lock is inherited by children, so its holders are not just the process whose number stands in the file. Looks through
// /proc; processes of other users that hide their descriptors are not found. For messages to people only.
#ifndef REPOTXN_STORAGE_LOCK_HOLDERS_H_
#define REPOTXN_STORAGE_LOCK_HOLDERS_H_

#include <vector>

namespace repotxn::storage {

// Process ids, ascending, that have the file behind `descriptor` open, the caller's own process left out.
std::vector<int> OtherHoldersOf(int descriptor);

// Process id of the caller.
int CurrentProcessId();

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_LOCK_HOLDERS_H_
