// Runs a program of the machine (git) to its end, for tests that compare with it. Aborts the test
// program when the program cannot be started.
#ifndef REPOTXN_TESTS_REFS_RUN_PROGRAM_H_
#define REPOTXN_TESTS_REFS_RUN_PROGRAM_H_

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/temp_directory.h"

namespace repotxn::testing {

struct ProgramResult {
  int exit_code = -1;
  std::string out;
};

inline std::string BytesOfFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
}

// `argv[0]` is looked up in PATH. Standard error is dropped.
inline ProgramResult RunProgram(const std::vector<std::string>& argv,
                                const std::string& input = "") {
  const TempDirectory scratch;
  const std::string in_path = scratch.path() + "/in";
  const std::string out_path = scratch.path() + "/out";
  WriteBytes(in_path, input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in_path.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out_path.c_str(), O_WRONLY | O_CREAT, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  const std::vector<std::string> environment = {"PATH=/usr/bin:/bin",
                                                "GIT_CONFIG_NOSYSTEM=1",
                                                "GIT_CONFIG_GLOBAL=/dev/null",
                                                "GIT_AUTHOR_NAME=a",
                                                "GIT_AUTHOR_EMAIL=a@b",
                                                "GIT_COMMITTER_NAME=a",
                                                "GIT_COMMITTER_EMAIL=a@b",
                                                "GIT_AUTHOR_DATE=1000000000 +0000",
                                                "GIT_COMMITTER_DATE=1000000000 +0000",
                                                "GIT_DEFAULT_HASH=sha1"};
  std::vector<char*> env;
  for (const std::string& entry : environment) env.push_back(const_cast<char*>(entry.c_str()));
  env.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, args[0], &actions, nullptr, args.data(), env.data()) != 0) {
    std::fprintf(stderr, "cannot start %s\n", args[0]);
    std::abort();
  }
  posix_spawn_file_actions_destroy(&actions);
  int wait_status = 0;
  waitpid(pid, &wait_status, 0);
  ProgramResult result;
  if (WIFEXITED(wait_status)) result.exit_code = WEXITSTATUS(wait_status);
  result.out = BytesOfFile(out_path);
  return result;
}

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_REFS_RUN_PROGRAM_H_
