// Fails on purpose, three branches deep: a fuzzing run that does not find it is broken, and scripts/fuzz says so.
#include <cstdint>
#include <cstdlib>

#include "refs/ref_name.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The last byte is judged by code of a library: its branches must be visible to the fuzzer too.
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size > 12 && repotxn::refs::RefName::Parse(bytes).ok()) std::abort();
  return 0;
}
