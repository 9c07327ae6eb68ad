#include "storage/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace repotxn::storage {
namespace {

class KernelRandom final : public Random {
 public:
  void Fill(void* out, size_t size) override {
    char* next = static_cast<char*>(out);
    while (size > 0) {
      const ssize_t got = getrandom(next, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) std::abort();  // Ids that are not random would be worse than no process.
      next += got;
      size -= static_cast<size_t>(got);
    }
  }
};

}  // namespace

Random* SystemRandom() {
  static KernelRandom* random = new KernelRandom;
  return random;
}

}  // namespace repotxn::storage
