#include <string>

#include <boost/filesystem/operations.hpp>

#include "storage/posix_file_system.h"

namespace repotxn::storage {

absl::Status MakeRootDirectory(absl::string_view root) {
  boost::system::error_code error;
  boost::filesystem::create_directories(
      boost::filesystem::path(std::string(root.data(), root.size())), error);
  return error ? absl::ErrnoToStatus(error.value(), "making the root directory of a store failed")
               : absl::OkStatus();
}

}  // namespace repotxn::storage
