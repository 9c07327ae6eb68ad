// A store on a real disk whose repositories stock Git has written, for tests with Git children.
//
// The oracle of capture: the same commands, run in a plain copy of a repository, show what stock Git makes of them; the
// store's repository must show the same after a commit and a clean close. Times and people are fixed, so ids are too.
#ifndef REPOTXN_TESTS_TXN_GIT_WORLD_H_
#define REPOTXN_TESTS_TXN_GIT_WORLD_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "objects/git_child.h"
#include "storage/posix_file_system.h"
#include "tests/support/temp_directory.h"
#include "tests/txn/world.h"
#include "txn/capture.h"
#include "txn/write_snapshot.h"

namespace repotxn::testing {

// One Git command of a story. "$OUT" stands for what the command before it printed, without the newline.
struct GitStep {
  std::vector<std::string> arguments;
  std::string input;
  std::vector<std::string> settings;
};

inline objects::GitCommand WithIdentity(objects::GitCommand command) {
  command.environment = {{"GIT_AUTHOR_NAME", "A"},
                         {"GIT_AUTHOR_EMAIL", "a@example.org"},
                         {"GIT_AUTHOR_DATE", "1700000000 +0000"},
                         {"GIT_COMMITTER_NAME", "A"},
                         {"GIT_COMMITTER_EMAIL", "a@example.org"},
                         {"GIT_COMMITTER_DATE", "1700000000 +0000"},
                         {"GIT_ALLOW_PROTOCOL", "file"}};
  return command;
}

class GitWorld {
 public:
  GitWorld() {
    storage::SetLogLevel(storage::LogLevel::kNone);
    fs_ = *storage::OpenPosixFileSystem(MadeDirectory("store"));
    EXPECT_THAT(Open(), IsOk());
  }

  absl::Status Open() {
    auto opened = txn::Store::Open({fs_.get(), nullptr, nullptr}, World::Options());
    if (opened.ok()) store_ = *std::move(opened);
    return opened.status();
  }
  absl::Status Close() {
    const absl::Status closed = store_->Close();
    store_.reset();
    return closed;
  }
  txn::Store& store() { return *store_; }
  storage::FileSystem& fs() { return *fs_; }

  std::string DirectoryOf(const RepositoryId& id) const {
    return absl::StrCat(temporary_.path(), "/store/", txn::layout::RepositoryDirectory(id).text());
  }
  std::string Outside(absl::string_view name) const { return absl::StrCat(temporary_.path(), "/", name); }

  // What stock Git prints there, without the last newline; a command that fails fails the test.
  static std::string Git(const std::string& directory, std::vector<std::string> arguments, std::string input = "",
                         std::vector<std::string> settings = {}) {
    objects::GitCommand command;
    command.repository = directory;
    command.arguments = std::move(arguments);
    command.settings = std::move(settings);
    return Output(objects::RunGit(WithIdentity(std::move(command)), objects::TextSource(std::move(input)), {}));
  }
  static std::string Output(const absl::StatusOr<objects::GitResult>& result) {
    EXPECT_THAT(result, IsOk());
    if (!result.ok()) return "";
    EXPECT_EQ(result->exit_code, 0) << result->errors;
    return std::string(absl::StripTrailingAsciiWhitespace(result->output));
  }

  // A plain bare repository outside of the store: three commits on main, a branch, a nested one, an annotated tag.
  std::string MakePlain(absl::string_view name, absl::string_view text = "one") {
    const std::string directory = MadeDirectory(name);
    Git(directory, {"init", "-q", "--bare", "--initial-branch=main", directory});
    for (const char* extra : {"hooks", "description", "info", "branches"}) {
      std::filesystem::remove_all(absl::StrCat(directory, "/", extra));
    }
    std::string stream;
    const std::string who = "A <a@example.org> 1700000000 +0000\n";
    for (int n = 1; n <= 3; ++n) {
      const std::string content = absl::StrCat(text, " ", n, "\n");
      absl::StrAppend(&stream, "commit refs/heads/main\nmark :", n, "\ncommitter ", who, "data 2\nc\n",
                      n > 1 ? absl::StrCat("from :", n - 1, "\n") : "", "M 644 inline file\ndata ",
                      content.size(), "\n", content, "\n");
    }
    absl::StrAppend(&stream, "reset refs/heads/feature\nfrom :2\n\nreset refs/heads/nested/deep\nfrom :1\n\n",
                    "tag v1\nfrom :2\ntagger ", who, "data 3\nv1\n\n");
    Git(directory, {"fast-import", "--quiet"}, stream);
    return directory;
  }

  // A repository of the store with the objects, refs and configuration of a plain one.
  RepositoryId Import(absl::string_view path, const std::string& plain) {
    RepositoryId id;
    const auto made = store_->Run({}, [&](txn::Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(id, txn.CreateRepository(Path(path), {}));
      return absl::OkStatus();
    });
    EXPECT_THAT(made.status, IsOk());
    std::filesystem::copy(plain + "/objects", DirectoryOf(id) + "/objects",
                          std::filesystem::copy_options::recursive);
    const std::string listed = Git(plain, {"for-each-ref", "--format=%(refname) %(objectname)"});
    const auto set = store_->Run({}, [&](txn::Transaction& txn) -> absl::Status {
      for (absl::string_view line : absl::StrSplit(listed, '\n')) {
        const std::vector<std::string> words = absl::StrSplit(line, ' ');
        REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(
            id, {.name = Ref(words[0]), .expected = {}, .value = refs::RefValue::Object(*ObjectId::FromHex(words[1]))}));
      }
      return txn.PutFile(id, "config", {FileText(plain + "/config"), 0644});
    });
    EXPECT_THAT(set.status, IsOk());
    EXPECT_THAT(store_->Materialize(), IsOk());  // so that the disk shows it, for whoever compares trees
    return id;
  }
  RepositoryId Import(absl::string_view path) {
    return Import(path, MakePlain(absl::StrCat("plain-of-", path)));
  }
  txn::CommitResult Put(const RepositoryId& id, absl::string_view path, std::string content, uint32_t mode = 0644) {
    return store_->Run({}, [&](txn::Transaction& txn) { return txn.PutFile(id, path, {content, mode}); });
  }
  txn::CommitResult Set(const RepositoryId& id, absl::string_view name, const refs::RefValue& value) {
    return store_->Run({}, [&](txn::Transaction& txn) {
      return txn.UpdateRef(id, {.name = Ref(name), .expected = {}, .value = value, .no_deref = true});
    });
  }
  refs::RefValue Read(const RepositoryId& id, absl::string_view name) {
    auto transaction = store_->Begin({});
    EXPECT_THAT(transaction, IsOk());
    auto value = (*transaction)->ReadRef(id, *refs::RefName::Parse(name));
    EXPECT_THAT(value, IsOk());
    return value.ok() ? *value : refs::RefValue::Absent();
  }

  // Runs steps where `run` runs a command.
  template <typename RunCommand>
  static void RunSteps(const std::vector<GitStep>& steps, const RunCommand& run) {
    std::string last;
    for (GitStep step : steps) {
      for (std::string& argument : step.arguments) {
        argument = absl::StrReplaceAll(argument, {{"$OUT", last}});
      }
      step.input = absl::StrReplaceAll(step.input, {{"$OUT", last}});
      last = run(step);
    }
  }
  static void RunPlain(const std::string& directory, const std::vector<GitStep>& steps) {
    RunSteps(steps, [&](const GitStep& step) {
      return Git(directory, step.arguments, step.input, step.settings);
    });
  }
  static void RunIn(txn::WriteSnapshot& snapshot, const RepositoryId& id, const std::vector<GitStep>& steps) {
    RunSteps(steps, [&](const GitStep& step) {
      objects::GitCommand command = WithIdentity(snapshot.Command(id, step.arguments));
      command.settings = step.settings;
      return Output(snapshot.Run(command, step.input));
    });
  }

  // What stock Git and a look at the files say of a bare repository, but for its layout: refs by value, HEAD, every
  // object, every other file with its bits and content, directories.
  static std::string Describe(const std::string& directory) {
    const std::string head = FileText(directory + "/HEAD");
    std::string text = absl::StrCat(
        "HEAD ", head, Git(directory, {"for-each-ref", "--format=%(refname) %(objectname) %(symref)"}), "\n");
    absl::StrAppend(&text, Git(directory, {"cat-file", "--batch-all-objects", "--batch-check"}), "\n");
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      const std::string path = entry.path().lexically_relative(directory).string();
      if (path == "HEAD" || path == "packed-refs" || path == "FETCH_HEAD" || absl::EndsWith(path, "_EDITMSG")) continue;
      const std::string top = path.substr(0, path.find('/'));
      if (top == "refs" || top == "objects" || top == "logs") continue;
      files[path] = Identity(entry.path().string(), false);
    }
    for (const auto& [path, identity] : files) absl::StrAppend(&text, path, " ", identity, "\n");
    return text;
  }
  // Every file below a directory: kind, bits, inode, content.
  static std::map<std::string, std::string> Tree(const std::string& directory) {
    std::map<std::string, std::string> tree;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      tree[entry.path().lexically_relative(directory).string()] = Identity(entry.path().string(), true);
    }
    return tree;
  }
  static std::string FileText(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  static void Write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }

 private:
  static std::string Identity(const std::string& path, bool with_inode) {
    struct stat info {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    if (S_ISDIR(info.st_mode)) return "directory";
    if (S_ISLNK(info.st_mode)) return "symlink";
    return absl::StrCat(info.st_mode & 0777, " ", with_inode ? info.st_ino : 0, " ", FileText(path));
  }
  std::string MadeDirectory(absl::string_view name) {
    const std::string path = Outside(name);
    std::filesystem::create_directories(path);
    return path;
  }

  TempDirectory temporary_;
  std::unique_ptr<storage::FileSystem> fs_;
  std::unique_ptr<txn::Store> store_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_TXN_GIT_WORLD_H_
