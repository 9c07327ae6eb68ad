// A real directory below TMPDIR that goes, with all in it, when the test ends.
//
// Thread-compatible.
#ifndef REPOTXN_TESTS_SUPPORT_TEMP_DIRECTORY_H_
#define REPOTXN_TESTS_SUPPORT_TEMP_DIRECTORY_H_

#include <string>

namespace repotxn::testing {

class TempDirectory {
 public:
  // Aborts when it cannot be made.
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  // Absolute.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_TEMP_DIRECTORY_H_
