// Children: what they see, how they end, and that none is left.
#include "storage/child_process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/posix_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::storage {
namespace {

using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::StatusIs;

// Long enough that only a fault reaches it.
constexpr absl::Duration kPatience = absl::Seconds(60);

ChildOptions Shell(absl::string_view script) {
  ChildOptions options;
  options.argv = {"sh", "-c", std::string(script)};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.stdin_stream = ChildStream::NewPipe();
  options.stdout_stream = ChildStream::NewPipe();
  options.stderr_stream = ChildStream::NewPipe();
  return options;
}

absl::StatusOr<ChildOutput> RunToEnd(const ChildOptions& options, absl::string_view input = "",
                                     const CommunicateLimits& limits = {},
                                     absl::Duration timeout = kPatience) {
  REPOTXN_ASSIGN_OR_RETURN(const auto child, ChildProcess::Start(options));
  return child->Communicate(input, limits, timeout);
}

// State letter of a process as the kernel tells it; 0 when there is none.
char StateOf(int pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? '\0' : text[name_end + 2];
}

bool IsGone(int pid) { return StateOf(pid) == '\0' || StateOf(pid) == 'Z'; }

// The end of a process that is not our child, awaited through a pipe that only it holds: reads
// until the end.
void AwaitEnd(int fd) {
  char buffer[64];
  absl::StatusOr<size_t> got = size_t{1};
  while (got.ok() && *got > 0) {
    ASSERT_OK_AND_ASSIGN(const bool ready, WaitReadable(fd, kPatience));
    ASSERT_TRUE(ready) << "a process is still there";
    got = ReadDescriptor(fd, absl::MakeSpan(buffer));
  }
}

TEST(ChildProcess, OutputErrorsAndExitCodeComeBack) {
  ASSERT_OK_AND_ASSIGN(const ChildOutput output,
                       RunToEnd(Shell("cat; echo no >&2; exit 3"), "input"));
  EXPECT_EQ(output.out, "input");
  EXPECT_EQ(output.err, "no\n");
  EXPECT_EQ(output.exit, (ExitStatus{false, 3}));
  EXPECT_EQ(output.exit.ToString(), "exit 3");
  EXPECT_FALSE(output.exit.ok());
}

TEST(ChildProcess, ADeathBySignalIsTold) {
  ASSERT_OK_AND_ASSIGN(const ChildOutput output, RunToEnd(Shell("kill -TERM $$")));
  EXPECT_EQ(output.exit, (ExitStatus{true, SIGTERM}));
  EXPECT_EQ(output.exit.ToString(), "signal 15");
}

TEST(ChildProcess, EnvironmentIsExact) {
  ASSERT_EQ(setenv("REPOTXN_LEAK", "leaked", 1), 0);
  ChildOptions options = Shell("");
  options.argv = {"/usr/bin/env"};
  options.environment = {"ONE=1", "TWO=with space"};
  ASSERT_OK_AND_ASSIGN(const ChildOutput output, RunToEnd(options));
  EXPECT_EQ(output.out, "ONE=1\nTWO=with space\n");
}

TEST(ChildProcess, WorkingDirectoryUmaskAndGroupAreItsOwn) {
  const mode_t old_umask = umask(077);
  ChildOptions options = Shell("pwd; umask; ps -o pgid= -p $$; echo $$");
  options.working_directory = "/usr/lib";
  const absl::StatusOr<ChildOutput> output = RunToEnd(options);
  umask(old_umask);
  ASSERT_OK(output);
  std::vector<std::string> lines;
  std::istringstream text(output->out);
  for (std::string line; text >> line;) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u) << output->out;
  EXPECT_EQ(lines[0], "/usr/lib");
  EXPECT_EQ(lines[1], "0022");
  EXPECT_EQ(lines[2], lines[3]);
}

TEST(ChildProcess, OnlyGivenDescriptorsAreOpen) {
  // Not close-on-exec: a descriptor that some other library left open.
  const OwnedDescriptor leaked(open("/dev/null", O_RDONLY));
  const OwnedDescriptor given(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ChildOptions options = Shell("");
  options.argv = {"/bin/ls", "/proc/self/fd"};
  options.inherited_descriptors = {given.get()};
  ASSERT_OK_AND_ASSIGN(const ChildOutput output, RunToEnd(options));
  // ls itself has the directory open too, under the lowest free number.
  std::istringstream text(output.out);
  std::vector<int> open_fds;
  for (int fd = 0; text >> fd;) open_fds.push_back(fd);
  EXPECT_EQ(open_fds.size(), 5u) << output.out;
  EXPECT_THAT(open_fds, ::testing::IsSupersetOf({0, 1, 2, given.get()}));
}

TEST(ChildProcess, StreamsMayCrossOver) {
  ASSERT_OK_AND_ASSIGN(const Pipe pipe, MakePipe());
  ChildOptions options = Shell("echo out; echo err >&2");
  options.stdout_stream = ChildStream::To(pipe.writer.get());
  options.stderr_stream = ChildStream::To(pipe.writer.get());
  ASSERT_OK_AND_ASSIGN(const auto child, ChildProcess::Start(options));
  EXPECT_EQ(child->stdout_descriptor(), -1);
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, child->Wait(kPatience));
  EXPECT_TRUE(exit.ok());
  DescriptorReader reader(pipe.reader.get());
  EXPECT_THAT(reader.ReadLine(100), IsOkAndHolds("out"));
  EXPECT_THAT(reader.ReadLine(100), IsOkAndHolds("err"));
}

TEST(ChildProcess, NullStreamsReadTheEndAndSwallowOutput) {
  ChildOptions options = Shell("cat; echo lost; echo lost >&2");
  options.stdin_stream = ChildStream::Null();
  options.stdout_stream = ChildStream::Null();
  options.stderr_stream = ChildStream::Null();
  ASSERT_OK_AND_ASSIGN(const ChildOutput output, RunToEnd(options));
  EXPECT_TRUE(output.exit.ok());
  EXPECT_EQ(output.out, "");
}

TEST(ChildProcess, SignalsAreDefaultAndUnblocked) {
  sigset_t blocked;
  sigset_t old_mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &old_mask);
  const auto old_handler = signal(SIGPIPE, SIG_IGN);
  ChildOptions options = Shell("");
  options.argv = {"/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"};
  const absl::StatusOr<ChildOutput> output = RunToEnd(options);
  signal(SIGPIPE, old_handler);
  pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
  ASSERT_OK(output);
  EXPECT_EQ(output->out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(ChildProcess, LimitsAreSet) {
  ChildOptions options = Shell("ulimit -c; ulimit -n; ulimit -Hn");
  options.limits = {{ChildLimit::Resource::kCoreBytes, 0}, {ChildLimit::Resource::kOpenFiles, 33}};
  ASSERT_OK_AND_ASSIGN(const ChildOutput output, RunToEnd(options));
  EXPECT_EQ(output.out, "0\n33\n33\n");
}

TEST(ChildProcess, WhatCannotStartIsReportedAndLeavesNothing) {
  ChildOptions options = Shell("");
  options.argv = {"/does/not/exist"};
  EXPECT_THAT(ChildProcess::Start(options), StatusIs(absl::StatusCode::kNotFound));
  options.argv = {"no-such-program"};
  EXPECT_THAT(ChildProcess::Start(options), StatusIs(absl::StatusCode::kNotFound));
  options.argv = {"/etc/passwd"};
  EXPECT_THAT(ChildProcess::Start(options), StatusIs(absl::StatusCode::kPermissionDenied));
  options = Shell("exit");
  options.working_directory = "/does/not/exist";
  EXPECT_THAT(ChildProcess::Start(options), StatusIs(absl::StatusCode::kNotFound));
  // None of them became a child.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ChildProcess, MalformedOptionsAreRefused) {
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  ChildOptions options = Shell("");
  options.argv.clear();
  EXPECT_THAT(ChildProcess::Start(options), StatusIs(kRefused));
  options = Shell(absl::string_view("a\0b", 3));
  EXPECT_THAT(ChildProcess::Start(options), StatusIs(kRefused));
  options = Shell("");
  options.working_directory = "relative";
  EXPECT_THAT(ChildProcess::Start(options), StatusIs(kRefused));
  options = Shell("");
  options.inherited_descriptors = {2};
  EXPECT_THAT(ChildProcess::Start(options), StatusIs(kRefused));
}

TEST(ChildProcess, LargeInputAndOutputDoNotBlockEachOther) {
  const std::string input(3 << 20, 'x');
  ASSERT_OK_AND_ASSIGN(const ChildOutput output, RunToEnd(Shell("cat"), input));
  EXPECT_TRUE(output.out == input);
}

TEST(ChildProcess, AChildThatIgnoresItsInputIsNoError) {
  ASSERT_OK_AND_ASSIGN(const ChildOutput output,
                       RunToEnd(Shell("exec 0<&-; echo done"), std::string(1 << 20, 'x')));
  EXPECT_TRUE(output.exit.ok());
  EXPECT_EQ(output.out, "done\n");
}

TEST(ChildProcess, OutputPastItsLimitKillsTheGroup) {
  CommunicateLimits limits;
  limits.stdout_bytes_max = 1000;
  EXPECT_THAT(RunToEnd(Shell("yes"), "", limits), StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_OK_AND_ASSIGN(const ChildOutput output,
                       RunToEnd(Shell("head -c 1000 /dev/zero"), "", limits));
  EXPECT_EQ(output.out.size(), 1000u);
}

TEST(ChildProcess, ErrorsPastTheirLimitAreCutAndSaidToBe) {
  CommunicateLimits limits;
  limits.stderr_bytes_max = 10;
  ASSERT_OK_AND_ASSIGN(
      const ChildOutput output,
      RunToEnd(Shell("head -c 1000000 /dev/zero | tr '\\0' e >&2; echo end"), "", limits));
  EXPECT_EQ(output.err, "eeeeeeeeee");
  EXPECT_TRUE(output.is_err_truncated);
  EXPECT_EQ(output.out, "end\n");
}

TEST(ChildProcess, ATimeOutKillsTheGroup) {
  ASSERT_OK_AND_ASSIGN(const auto child, ChildProcess::Start(Shell("read never")));
  EXPECT_THAT(child->Wait(absl::ZeroDuration()), StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_OK_AND_ASSIGN(const auto sleeper, ChildProcess::Start(Shell("sleep 1000")));
  EXPECT_THAT(sleeper->Communicate("", {}, absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(sleeper->Wait(kPatience), IsOkAndHolds(ExitStatus{true, SIGKILL}));
}

TEST(ChildProcess, WaitMayBeRepeated) {
  ASSERT_OK_AND_ASSIGN(const auto child, ChildProcess::Start(Shell("exit 4")));
  EXPECT_THAT(child->Wait(kPatience), IsOkAndHolds(ExitStatus{false, 4}));
  EXPECT_THAT(child->Wait(kPatience), IsOkAndHolds(ExitStatus{false, 4}));
}

// The group goes as a whole: what the leader started in the background does not stay.
TEST(ChildProcess, NothingOfTheGroupSurvives) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  ChildOptions options = Shell("sleep 1000 & echo $!; wait");
  options.inherited_descriptors = {pipe.writer.get()};
  ASSERT_OK_AND_ASSIGN(auto child, ChildProcess::Start(options));
  pipe.writer.Reset();
  DescriptorReader reader(child->stdout_descriptor());
  ASSERT_OK_AND_ASSIGN(const std::string line, reader.ReadLine(100));
  int background = 0;
  ASSERT_TRUE(absl::SimpleAtoi(line, &background));
  EXPECT_FALSE(IsGone(background));
  child.reset();
  AwaitEnd(pipe.reader.get());
}

TEST(ChildProcess, ABackgroundProcessDoesNotHoldUpItsLeadersOutput) {
  ASSERT_OK_AND_ASSIGN(const ChildOutput output,
                       RunToEnd(Shell("echo first; sleep 1000 & exit 0")));
  EXPECT_EQ(output.out, "first\n");
  EXPECT_TRUE(output.exit.ok());
}

// The kernel ties a child to the thread that started it; ours must outlive any caller's.
TEST(ChildProcess, SurvivesTheThreadThatAskedForIt) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child = absl::UnknownError("");
  std::thread([&child] {
    child = ChildProcess::Start(Shell("read line; echo \"got $line\""));
  }).join();
  ASSERT_OK(child);
  ASSERT_OK_AND_ASSIGN(const ChildOutput output, (*child)->Communicate("word\n", {}, kPatience));
  EXPECT_EQ(output.out, "got word\n");
}

TEST(ChildProcess, ManyThreadsStartChildrenAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(8);
  for (size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([i, &outputs] {
      const auto output = RunToEnd(Shell(absl::StrCat("echo ", i)));
      outputs[i] = output.ok() ? output->out : output.status().ToString();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i], absl::StrCat(i, "\n"));
}

// Not a test of its own: the process that DiesWithItsParent kills. It starts a child and tells its
// number.
TEST(ChildProcessParent, StartsAChildAndWaits) {
  if (getenv("REPOTXN_CHILD_PROCESS_PARENT") == nullptr) {
    GTEST_SKIP() << "runs only inside DiesWithItsParent";
  }
  ChildOptions options = Shell("echo $$ >&2; exec sleep 1000");
  options.stderr_stream = ChildStream::To(STDERR_FILENO);
  // Descriptor 3 or above that the test's pipe has here; its end tells the test of the child's
  // death.
  int fd = -1;
  ASSERT_TRUE(absl::SimpleAtoi(getenv("REPOTXN_CHILD_PROCESS_PARENT"), &fd));
  options.inherited_descriptors = {fd};
  ASSERT_OK_AND_ASSIGN(const auto child, ChildProcess::Start(options));
  EXPECT_OK(child->Wait(absl::InfiniteDuration()).status());
}

TEST(ChildProcess, DiesWithItsParent) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  ChildOptions options = Shell("");
  options.argv = {"/proc/self/exe", "--gtest_filter=ChildProcessParent.StartsAChildAndWaits"};
  options.environment.push_back(absl::StrCat("REPOTXN_CHILD_PROCESS_PARENT=", pipe.writer.get()));
  options.inherited_descriptors = {pipe.writer.get()};
  ASSERT_OK_AND_ASSIGN(const auto parent, ChildProcess::Start(options));
  pipe.writer.Reset();
  DescriptorReader reader(parent->stderr_descriptor());
  ASSERT_OK_AND_ASSIGN(const std::string line, reader.ReadLine(100));
  int grandchild = 0;
  ASSERT_TRUE(absl::SimpleAtoi(line, &grandchild)) << line;
  EXPECT_FALSE(IsGone(grandchild));
  // The parent alone: the grandchild is in a group of its own.
  ASSERT_EQ(kill(parent->pid(), SIGKILL), 0);
  AwaitEnd(pipe.reader.get());
}

// B16: the lock stays with a child that inherited it after our own holder is gone.
TEST(ChildProcess, AnInheritedLockOutlivesItsHolder) {
  repotxn::testing::TempDirectory directory;
  ASSERT_OK_AND_ASSIGN(const auto fs, OpenPosixFileSystem(directory.path()));
  const StorePath path = StorePath::Literal("LOCK");
  ASSERT_OK_AND_ASSIGN(auto lock, fs->Lock(path, "holder"));
  ChildOptions options = Shell("read line");
  options.inherited_descriptors = {lock->descriptor()};
  ASSERT_OK_AND_ASSIGN(auto child, ChildProcess::Start(options));
  lock.reset();
  EXPECT_THAT(fs->Lock(path, "other"), StatusIs(absl::StatusCode::kUnavailable));
  child->CloseStdin();
  ASSERT_OK(child->Wait(kPatience).status());
  EXPECT_OK(fs->Lock(path, "other").status());
}

TEST(Descriptor, AWriteWithoutAReaderFailsQuietly) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  pipe.reader.Reset();
  // SIGPIPE has its default action in tests: it would end the process.
  EXPECT_THAT(WriteDescriptor(pipe.writer.get(), "x"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(Descriptor, LinesAndCountedBytesShareOneStream) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  ASSERT_OK(WriteDescriptor(pipe.writer.get(), "one\n\n12345three\nunfinished"));
  pipe.writer.Reset();
  DescriptorReader reader(pipe.reader.get());
  EXPECT_THAT(reader.ReadLine(3), IsOkAndHolds("one"));
  EXPECT_THAT(reader.ReadLine(3), IsOkAndHolds(""));
  EXPECT_THAT(reader.ReadExactly(5), IsOkAndHolds("12345"));
  EXPECT_THAT(reader.ReadLine(100), IsOkAndHolds("three"));
  std::string unfinished;
  EXPECT_THAT(reader.ReadLine(100, &unfinished), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(unfinished, "unfinished");
  EXPECT_THAT(reader.ReadExactly(1), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(Descriptor, ALineKeepsItsBound) {
  ASSERT_OK_AND_ASSIGN(const Pipe pipe, MakePipe());
  ASSERT_OK(WriteDescriptor(pipe.writer.get(), "12345\n"));
  DescriptorReader reader(pipe.reader.get());
  EXPECT_THAT(reader.ReadLine(4), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace repotxn::storage
