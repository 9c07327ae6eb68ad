// Any bytes: what is taken, written out again in its plainest form, is taken again and means the
// same; and a line number is one of the text's.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/config_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto settings = repotxn::daemon::ParseConfig(text);
  if (!settings.ok()) return 0;
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  std::string plain;
  auto expected = *settings;
  int number = 0;
  for (repotxn::daemon::Setting& setting : expected) {
    if (setting.line < 1 || setting.line > lines) std::abort();
    setting.line = ++number;
    absl::StrAppend(&plain, setting.key, "=", setting.value, "\n");
  }
  const auto again = repotxn::daemon::ParseConfig(plain);
  if (!again.ok() || *again != expected) std::abort();
  return 0;
}
