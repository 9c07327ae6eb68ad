// Stock `git` as a client, in a home of its own, against a server of the test.
//
// Every call has a time limit, and no child outlives it.
//
// Thread-compatible: several threads may use one client in different work trees.
#ifndef REPOTXN_TESTS_DAEMON_GIT_CLIENT_H_
#define REPOTXN_TESTS_DAEMON_GIT_CLIENT_H_

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "storage/child_process.h"
#include "tests/support/temp_directory.h"

namespace repotxn::testing {

struct GitOutcome {
  int code = -1;
  std::string out;  // both streams

  bool ok() const { return code == 0; }
};

class GitClient {
 public:
  // A directory for work trees.
  const std::string& home() const { return home_.path(); }
  std::string Tree(const std::string& name) const { return absl::StrCat(home(), "/", name); }

  // Runs `git <arguments>` in a work tree ("" is the home).
  GitOutcome Run(const std::string& tree, const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {"git"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return RunProgram(tree, argv);
  }
  // The same with the expectation that it succeeds; its output without the last newline.
  std::string Must(const std::string& tree, const std::vector<std::string>& arguments) const {
    const GitOutcome outcome = Run(tree, arguments);
    EXPECT_EQ(outcome.code, 0) << "git " << absl::StrJoin(arguments, " ") << "\n" << outcome.out;
    return std::string(absl::StripSuffix(outcome.out, "\n"));
  }
  GitOutcome RunProgram(const std::string& tree, const std::vector<std::string>& argv) const {
    storage::ChildOptions options;
    options.argv = argv;
    options.environment = {absl::StrCat("HOME=", home()),
                           "PATH=/usr/local/bin:/usr/bin:/bin",
                           "LC_ALL=C",
                           "GIT_CONFIG_NOSYSTEM=1",
                           "GIT_TERMINAL_PROMPT=0",
                           "GIT_AUTHOR_NAME=Ann",
                           "GIT_AUTHOR_EMAIL=ann@example.com",
                           "GIT_COMMITTER_NAME=Ann",
                           "GIT_COMMITTER_EMAIL=ann@example.com"};
    options.working_directory = tree.empty() ? home() : Tree(tree);
    options.stdout_stream = storage::ChildStream::NewPipe();
    options.stderr_stream = storage::ChildStream::NewPipe();
    GitOutcome outcome;
    auto child = storage::ChildProcess::Start(options);
    if (!child.ok()) {
      outcome.out = std::string(child.status().message());
      return outcome;
    }
    const auto output = (*child)->Communicate("", {}, absl::Minutes(2));
    if (!output.ok()) {
      outcome.out = std::string(output.status().message());
      return outcome;
    }
    outcome.code = output->exit.was_signalled ? 128 + output->exit.code : output->exit.code;
    outcome.out = output->out + output->err;
    return outcome;
  }

  // A new work tree on branch main, with `more` for git init.
  void Init(const std::string& tree, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"init", "-q", "-b", "main"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back(Tree(tree));
    Must("", arguments);
  }
  // Writes a file and commits it; the commit's id.
  std::string Commit(const std::string& tree, const std::string& file,
                     const std::string& content) const {
    std::ofstream(absl::StrCat(Tree(tree), "/", file)) << content;
    Must(tree, {"add", "."});
    Must(tree, {"commit", "-q", "-m", absl::StrCat("add ", file)});
    return Must(tree, {"rev-parse", "HEAD"});
  }

 private:
  TempDirectory home_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_DAEMON_GIT_CLIENT_H_
