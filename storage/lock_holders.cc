#include "storage/lock_holders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include <boost/filesystem/operations.hpp>

namespace repotxn::storage {
namespace {

namespace fs = boost::filesystem;

// Whether one of the descriptors below `directory` (/proc/<pid>/fd) is the file `wanted`.
bool HasOpen(const fs::path& directory, const struct stat& wanted) {
  boost::system::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    struct stat st = {};
    if (stat(it->path().c_str(), &st) == 0 && st.st_dev == wanted.st_dev && st.st_ino == wanted.st_ino) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<int> OtherHoldersOf(int descriptor) {
  std::vector<int> holders;
  struct stat wanted = {};
  if (fstat(descriptor, &wanted) != 0) return holders;
  boost::system::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const int pid = std::atoi(name.c_str());
    if (pid != CurrentProcessId() && HasOpen(it->path() / "fd", wanted)) holders.push_back(pid);
  }
  std::sort(holders.begin(), holders.end());
  return holders;
}

int CurrentProcessId() { return static_cast<int>(getpid()); }

}  // namespace repotxn::storage
