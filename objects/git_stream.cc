#include "objects/git_stream.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kErrorBytesMax = 16 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<GitStream>> GitStream::Start(const GitCommand& command,
                                                            InputSource input,
                                                            absl::Duration timeout) {
  storage::ChildOptions options;
  REPOTXN_ASSIGN_OR_RETURN(options.argv, ClosedArguments(command));
  REPOTXN_ASSIGN_OR_RETURN(options.environment, ClosedEnvironment(command));
  options.working_directory = command.repository;
  options.stderr_stream = storage::ChildStream::NewPipe();
  if (command.lock_fd >= 0) options.inherited_descriptors.push_back(command.lock_fd);
  REPOTXN_ASSIGN_OR_RETURN(storage::Pipe out, storage::MakePipe());
  options.stdout_stream = storage::ChildStream::To(out.writer.get());
  storage::Pipe in;
  if (input) {
    REPOTXN_ASSIGN_OR_RETURN(in, storage::MakePipe());
    options.stdin_stream = storage::ChildStream::To(in.reader.get());
  }
  std::unique_ptr<GitStream> stream(new GitStream);
  REPOTXN_ASSIGN_OR_RETURN(stream->child_, storage::ChildProcess::Start(options));
  stream->output_ = std::move(out.reader);
  GitStream* const self = stream.get();
  try {
    // Standard error and the end of the child are watched beside the reader, who may be slow.
    stream->waiter_ = std::thread([self, timeout] {
      const storage::CommunicateLimits limits{/*stdout_bytes_max=*/0, kErrorBytesMax};
      self->ended_ = self->child_->Communicate("", limits, timeout);
    });
    if (input) {
      stream->feeder_ =
          std::thread([self, source = std::move(input), pipe = std::move(in.writer)]() mutable {
            self->fed_ = FeedChild(source, std::move(pipe));
            if (!self->fed_.ok()) self->child_->KillGroup();
          });
    }
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError("no thread for a Git child");
  }
  return stream;
}

GitStream::~GitStream() {
  if (child_ != nullptr) child_->KillGroup();
  output_.Reset();
  Join();
}

void GitStream::Join() {
  if (feeder_.joinable()) feeder_.join();
  if (waiter_.joinable()) waiter_.join();
}

absl::StatusOr<bool> GitStream::Fill() {
  buffer_.erase(0, std::exchange(consumed_, 0));
  const size_t had = buffer_.size();
  buffer_.resize(had + kReadBytes);
  const auto got =
      storage::ReadDescriptor(output_.get(), absl::MakeSpan(&buffer_[had], kReadBytes));
  buffer_.resize(had + (got.ok() ? *got : 0));
  if (!got.ok()) return got.status();
  return *got > 0;
}

absl::StatusOr<size_t> GitStream::Read(absl::Span<char> out) {
  if (consumed_ == buffer_.size()) return storage::ReadDescriptor(output_.get(), out);
  const size_t n = buffer_.copy(out.data(), out.size(), consumed_);
  consumed_ += n;
  return n;
}

absl::StatusOr<bool> GitStream::ReadLine(std::string* line) {
  size_t searched = consumed_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      line->assign(buffer_, consumed_, end - consumed_);
      consumed_ = end + 1;
      return true;
    }
    const size_t waiting = buffer_.size() - consumed_;
    if (waiting > kLineBytesMax) return absl::ResourceExhaustedError("line of a child is too long");
    REPOTXN_ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (!has_more && waiting > 0) return absl::DataLossError("output of a child ends in a line");
    if (!has_more) return false;
    searched = waiting;
  }
}

absl::StatusOr<std::string> GitStream::ReadExactly(size_t size) {
  while (buffer_.size() - consumed_ < size) {
    REPOTXN_ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (!has_more) return absl::DataLossError("output of a child ends early");
  }
  std::string bytes = buffer_.substr(consumed_, size);
  consumed_ += size;
  return bytes;
}

absl::StatusOr<GitResult> GitStream::Finish() {
  // A child that still writes is not to wait for a reader who has gone.
  output_.Reset();
  Join();
  REPOTXN_RETURN_IF_ERROR(fed_);
  if (!ended_.ok()) return ended_.status();
  GitResult result;
  result.exit_code = ended_->exit.was_signalled ? 128 + ended_->exit.code : ended_->exit.code;
  result.errors = ended_->err;
  return result;
}

}  // namespace repotxn::objects
