// A temporary directory on the real disk in which stock Git makes repositories, and a FileSystem
// over it.
//
// Scripts run under `sh -eu` with an environment of our own, so that nothing of the machine's
// configuration gets in.
//
// Single-threaded.
#ifndef REPOTXN_TESTS_OBJECTS_GIT_SANDBOX_H_
#define REPOTXN_TESTS_OBJECTS_GIT_SANDBOX_H_

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "storage/object_id.h"
#include "storage/posix_file_system.h"
#include "tests/support/seeded_random.h"
#include "tests/support/temp_directory.h"

namespace repotxn::testing {

class GitSandbox {
 public:
  GitSandbox() {
    auto fs = storage::OpenPosixFileSystem(directory_.path());
    if (!fs.ok()) std::abort();
    fs_ = *std::move(fs);
  }

  const std::string& path() const { return directory_.path(); }
  storage::FileSystem& fs() { return *fs_; }

  // Runs `script` in the sandbox; returns its exit code and its standard output through `output`.
  int TryRun(const std::string& script, std::string* output) {
    Write("script", script);
    const std::string command =
        "cd '" + path() + "' && env -i PATH=/usr/local/bin:/usr/bin:/bin HOME='" + path() +
        "' GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org"
        " GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org"
        " GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'"
        " sh -eu script 2>errors";
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) std::abort();
    output->clear();
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, pipe)) > 0;) output->append(chunk, n);
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // The same; a script that fails ends the test program with what Git said.
  std::string Run(const std::string& script) {
    std::string output;
    if (TryRun(script, &output) == 0) return output;
    std::fprintf(stderr, "script failed:\n%s\n%s\n", script.c_str(), Read("errors").c_str());
    std::abort();
  }
  // One line of output, without its newline.
  std::string Line(const std::string& script) {
    std::string output = Run(script);
    while (!output.empty() && output.back() == '\n') output.pop_back();
    return output;
  }
  ObjectId Oid(const std::string& script) { return *ObjectId::FromHex(Line(script)); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(path() + "/" + name, std::ios::binary) << bytes;
  }
  std::string Read(const std::string& name) {
    std::ostringstream bytes;
    bytes << std::ifstream(path() + "/" + name, std::ios::binary).rdbuf();
    return bytes.str();
  }

 private:
  TempDirectory directory_;
  std::unique_ptr<storage::FileSystem> fs_;
};

// A stream for `git fast-import`: a seeded history of `commits` commits on main with files that
// grow a little at a time (so that deltas arise), some binary, now and then a merge with what was
// there ten commits ago.
inline std::string RandomHistory(uint64_t seed, int commits, const std::string& branch = "main") {
  SeededRandom random(seed);
  std::ostringstream stream;
  std::string files[6];
  std::vector<std::string> drifting;
  for (int i = 1; i <= commits; ++i) {
    stream << "commit refs/heads/" << branch << "\nmark :" << i << "\ncommitter C <c@example.org> "
           << 1700000000 + i << " +0000\ndata 8\nmessage\n\n";
    if (i > 12 && random.Below(8) == 0) stream << "merge :" << i - 10 << "\n";
    // One file drifts: a revision is like its neighbours only, so its deltas form a long chain.
    for (int line = 0; line < 4; ++line) {
      // Of one width: Git looks for bases among objects of like size.
      drifting.push_back(std::to_string(uint64_t{1'000'000'000'000'000'000} +
                                        random.Below(8'000'000'000'000'000'000)) +
                         "\n");
      if (drifting.size() > 40) drifting.erase(drifting.begin());
    }
    std::string text;
    for (const std::string& line : drifting) text += line;
    stream << "M 100644 inline drifting\ndata " << text.size() << "\n" << text << "\n";
    for (int edits = 0; edits < 2; ++edits) {
      const uint64_t which = random.Below(6);
      std::string& file = files[which];
      for (uint64_t n = random.Below(40); n-- > 0;) {
        file += which == 0 ? std::string(1, static_cast<char>(random.Below(256)))
                           : "line " + std::to_string(random.Below(1000)) + "\n";
      }
      if (random.Below(10) == 0) file.erase(0, file.size() / 2);
      stream << "M 100644 inline dir" << which % 3 << "/file" << which << "\ndata " << file.size()
             << "\n"
             << file << "\n";
    }
  }
  stream << "done\n";
  return stream.str();
}

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_OBJECTS_GIT_SANDBOX_H_
