// Runs a Git child whose input and output are streams of any length.
//
// RunGit() keeps all that a child prints; here the caller reads it piece by piece, while another
// thread feeds the child, so that neither side is ever held in memory. The output of one stream can
// be the input of the next:
//
//   REPOTXN_ASSIGN_OR_RETURN(auto stream, GitStream::Start(command, source, absl::Hours(1)));
//   std::string line;
//   for (;;) {
//     REPOTXN_ASSIGN_OR_RETURN(const bool has_line, stream->ReadLine(&line));
//     if (!has_line) break;
//   }
//   REPOTXN_ASSIGN_OR_RETURN(const GitResult result, stream->Finish());
//
// What was read counts only when Finish() says how the child ended.
//
// Externally synchronised by its owner. The source is called in a thread of the stream's own.
//
// Lifetime: what the source uses must outlive the stream.
#ifndef REPOTXN_OBJECTS_GIT_STREAM_H_
#define REPOTXN_OBJECTS_GIT_STREAM_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "objects/git_child.h"
#include "storage/child_process.h"
#include "storage/descriptor.h"

namespace repotxn::objects {

class GitStream {
 public:
  // Starts the command. `input` unset: the child's input is empty. `timeout` is a wall-clock bound
  // on the whole run; the child is killed when it passes.
  //
  // Errors: kInvalidArgument when a field of the command breaks its rule; kResourceExhausted when
  // there is no process, descriptor or thread.
  static absl::StatusOr<std::unique_ptr<GitStream>> Start(const GitCommand& command,
                                                          InputSource input,
                                                          absl::Duration timeout);
  // Kills the child when it still runs. Waits for the source to return from its last call.
  ~GitStream();
  GitStream(const GitStream&) = delete;
  GitStream& operator=(const GitStream&) = delete;

  // At least one byte of output, at most out.size(); 0 at the end.
  absl::StatusOr<size_t> Read(absl::Span<char> out);
  // Next line without its newline; false at the end. kDataLoss when the output ends inside a line,
  // kResourceExhausted when one is longer than kLineBytesMax.
  absl::StatusOr<bool> ReadLine(std::string* line);
  // Exactly `size` bytes. kDataLoss when the output ends before.
  absl::StatusOr<std::string> ReadExactly(size_t size);

  // Waits for the child's end and says how it ended; output that was not read is lost. A child that
  // exits with any code is a result (its `output` is empty).
  //
  // Errors: kDeadlineExceeded when the timeout passed, and those of the source.
  absl::StatusOr<GitResult> Finish();

  static constexpr size_t kLineBytesMax = 64 << 10;

 private:
  GitStream() = default;
  // Fills the buffer by one read; false at the end.
  absl::StatusOr<bool> Fill();
  void Join();

  std::unique_ptr<storage::ChildProcess> child_;
  storage::OwnedDescriptor output_;
  std::string buffer_;
  size_t consumed_ = 0;  // bytes of buffer_ that were handed out

  // Written by the threads, read after they were joined.
  absl::Status fed_;
  absl::StatusOr<storage::ChildOutput> ended_ = absl::UnknownError("not run");
  std::thread feeder_;
  std::thread waiter_;
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_GIT_STREAM_H_
