// Bytes are a script of transactions; the conflict history must agree with the naive oracle, both ways.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/locks/history_script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The oracle is quadratic.
  if (size > 4096) return 0;
  const std::string fault = repotxn::locks::HistoryScript(data, size).Run();
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
