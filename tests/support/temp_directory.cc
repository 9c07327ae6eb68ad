#include "tests/support/temp_directory.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace repotxn::testing {

TempDirectory::TempDirectory() {
  std::error_code error;
  path_ = (std::filesystem::temp_directory_path(error) / "repotxn-XXXXXX").string();
  if (error || mkdtemp(path_.data()) == nullptr) std::abort();
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace repotxn::testing
