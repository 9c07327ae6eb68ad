// The one thread that starts children, and what happens between fork and exec. Private to storage/.
//
// The child shares our memory until it has called exec (as after vfork, on a stack of its own), so
// a start costs the same whatever the size of the process; in return it may only make system calls.
// Everything it needs is prepared by the caller and pointed to by the request.
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_CHILD_SPAWNER_H_
#define REPOTXN_STORAGE_CHILD_SPAWNER_H_

#include <sys/resource.h>

#include <utility>
#include <vector>

namespace repotxn::storage {

struct SpawnRequest {
  // In. Pointers live until the call returns.
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;
  int streams[3] = {-1, -1, -1};  // descriptors that become 0, 1 and 2
  std::vector<int> inherited;     // sorted, distinct, above 2
  std::vector<std::pair<int, rlimit>> limits;

  // Out. With an error no child is left.
  int pid = -1;
  int pid_fd = -1;  // close-on-exec, the caller's
  int error = 0;    // errno of failed_step
  const char* failed_step = "";
};

void SpawnOnSpawnerThread(SpawnRequest* request);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_CHILD_SPAWNER_H_
