#include "daemon/upload_pack.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "daemon/error_reply.h"
#include "daemon/pkt_line.h"
#include "objects/git_child.h"
#include "storage/child_process.h"
#include "storage/log.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr absl::string_view kRequestType = "application/x-git-upload-pack-request";
constexpr absl::string_view kResultType = "application/x-git-upload-pack-result";
constexpr absl::string_view kAdvertisementType = "application/x-git-upload-pack-advertisement";

absl::StatusOr<std::string> ReadAll(const BodyReader& body, size_t bytes_max) {
  std::string all;
  std::vector<char> buffer(kPieceBytes);
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const size_t size, body(absl::MakeSpan(buffer)));
    if (size == 0) return all;
    if (all.size() + size > bytes_max) {
      return absl::ResourceExhaustedError("the fetch request is too large");
    }
    all.append(buffer.data(), size);
  }
}

absl::StatusOr<std::unique_ptr<storage::ChildProcess>> StartChild(
    const txn::SnapshotDirectory& snapshot, bool is_advertisement, const std::string& protocol,
    int lock_descriptor) {
  objects::GitCommand git;
  git.repository = snapshot.absolute_path();
  git.arguments = {"upload-pack", "--strict", "--stateless-rpc"};
  if (is_advertisement) git.arguments.push_back("--http-backend-info-refs");
  git.arguments.push_back(snapshot.absolute_path());
  if (!protocol.empty()) git.environment.emplace_back("GIT_PROTOCOL", protocol);
  git.settings = snapshot.GitSettings();
  git.settings.push_back("uploadpack.allowFilter=true");
  git.lock_fd = lock_descriptor;
  storage::ChildOptions options;
  REPOTXN_ASSIGN_OR_RETURN(options.argv, objects::ClosedArguments(git));
  REPOTXN_ASSIGN_OR_RETURN(options.environment, objects::ClosedEnvironment(git));
  options.working_directory = snapshot.absolute_path();
  options.stdin_stream = storage::ChildStream::NewPipe();
  options.stdout_stream = storage::ChildStream::NewPipe();
  if (lock_descriptor >= 0) options.inherited_descriptors = {lock_descriptor};
  return storage::ChildProcess::Start(options);
}

// Next piece of a child's output; empty at its end.
absl::StatusOr<std::string> ReadPiece(storage::ChildProcess& child, absl::Time deadline) {
  const absl::Duration left = deadline - absl::Now();
  REPOTXN_ASSIGN_OR_RETURN(const bool is_readable,
                           storage::WaitReadable(child.stdout_descriptor(), left));
  if (!is_readable) return absl::DeadlineExceededError("the fetch took too long");
  std::string piece(kPieceBytes, '\0');
  REPOTXN_ASSIGN_OR_RETURN(const size_t size,
                           storage::ReadDescriptor(child.stdout_descriptor(),
                                                   absl::MakeSpan(&piece[0], piece.size())));
  piece.resize(size);
  return piece;
}

// Whether output begins with the refusal of a want.
bool IsWantRefusal(absl::string_view output) {
  return output.size() > kPktHeaderBytes &&
         absl::StartsWith(output.substr(kPktHeaderBytes), "ERR upload-pack: not our ref");
}

}  // namespace

std::string AcceptedProtocol(absl::string_view header) {
  for (const absl::string_view word : absl::StrSplit(header, ':')) {
    if (word == "version=1" || word == "version=2") return std::string(word.data(), word.size());
  }
  return "";
}

absl::StatusOr<std::string> UploadPack::PinKey(const txn::RepositoryPath& path) {
  txn::BeginOptions begin;
  begin.access = txn::Access::kReadOnly;
  REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<txn::Transaction> txn, store_->Begin(begin));
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, txn->OpenRepository(path));
  return id.ToHex();
}

UploadPack::ChildEnd UploadPack::RunChild(const txn::SnapshotDirectory& snapshot,
                                          bool is_advertisement, const HttpRequest& request,
                                          const std::string& input, absl::string_view prefix,
                                          bool holds_refusal, ResponseWriter& out) {
  auto started = StartChild(snapshot, is_advertisement,
                            AcceptedProtocol(request.Header("git-protocol")),
                            store_->lock_descriptor());
  if (!started.ok()) {
    storage::LogWarning(absl::StrCat("upload-pack did not start: ", started.status().message()));
    return ChildEnd::kFailed;
  }
  const std::unique_ptr<storage::ChildProcess> child = *std::move(started);
  // The child may answer before it has read everything, so both directions run at once.
  std::thread feeder([&child, &input] {
    if (!input.empty()) {
      IgnoreBecause(storage::WriteDescriptor(child->stdin_descriptor(), input),
                    "a child that ended early says why on its output");
    }
    child->CloseStdin();
  });

  ChildEnd end = ChildEnd::kFailed;
  while (true) {
    const absl::StatusOr<std::string> piece = ReadPiece(*child, request.deadline);
    if (!piece.ok() || piece->empty()) break;
    if (end == ChildEnd::kFailed) {
      if (holds_refusal && IsWantRefusal(*piece)) {
        end = ChildEnd::kNotOurRef;
        break;
      }
      end = ChildEnd::kAnswered;
      out.Start(200, is_advertisement ? kAdvertisementType : kResultType,
                {{"Cache-Control", "no-cache"}});
      if (!prefix.empty() && !out.Write(prefix).ok()) break;
    }
    if (!out.Write(*piece).ok()) break;
  }
  // Also when the client went away or took too long: what still runs is of no use to anyone.
  child->KillGroup();
  feeder.join();
  return end;
}

void UploadPack::Advertise(const txn::RepositoryPath& path, const HttpRequest& request,
                           ResponseWriter& out) {
  const absl::StatusOr<std::string> key = PinKey(path);
  if (!key.ok()) return ReplyTextError(key.status(), out);
  const auto snapshot = store_->ReadSnapshot(path);
  if (!snapshot.ok()) return ReplyTextError(snapshot.status(), out);
  std::string prefix;
  if (AcceptedProtocol(request.Header("git-protocol")) != "version=2") {
    // Version 2 shows only capabilities here.
    pins_.Pin(*key, *snapshot);
    AppendPkt("# service=git-upload-pack\n", &prefix);
    AppendFlush(&prefix);
  }
  if (RunChild(**snapshot, /*is_advertisement=*/true, request, "", prefix,
               /*holds_refusal=*/false, out) == ChildEnd::kFailed) {
    ReplyTextError(absl::InternalError("the repository cannot be read"), out);
  }
}

void UploadPack::Serve(const txn::RepositoryPath& path, const HttpRequest& request,
                       const BodyReader& body, ResponseWriter& out) {
  if (request.Header("content-type") != kRequestType) {
    return out.Reply(415, "text/plain", "not a fetch request\n");
  }
  const absl::StatusOr<std::string> input = ReadAll(body, options_.request_bytes_max);
  if (!input.ok()) return ReplyTextError(input.status(), out);
  const absl::StatusOr<std::string> key = PinKey(path);
  if (!key.ok()) return ReplyTextError(key.status(), out);
  const auto newest = store_->ReadSnapshot(path);
  if (!newest.ok()) return ReplyTextError(newest.status(), out);

  const bool is_v2 = AcceptedProtocol(request.Header("git-protocol")) == "version=2";
  if (is_v2 && absl::StrContains(input->substr(0, 64), "command=ls-refs")) {
    pins_.Pin(*key, *newest);
  }
  // Version 2 takes any object that exists. Before it a want must be a tip: if it is none any more
  // it was one in what the client was shown.
  // Held to the end in any case: a transfer may take longer than a pin, and what it sends must not go meanwhile.
  const std::vector<PinnedSnapshots::Snapshot> shown = pins_.Of(*key);
  std::vector<PinnedSnapshots::Snapshot> places = {*newest};
  if (!is_v2) {
    for (const PinnedSnapshots::Snapshot& pinned : shown) {
      if (pinned != *newest) places.push_back(pinned);
    }
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const bool is_last = i + 1 == places.size();
    const ChildEnd end = RunChild(*places[i], /*is_advertisement=*/false, request, *input, "",
                                  /*holds_refusal=*/!is_last, out);
    if (end == ChildEnd::kAnswered) return;
    if (end == ChildEnd::kFailed) break;
  }
  // A child that ends without a word has read a request that is cut off or makes no sense.
  ReplyTextError(absl::InvalidArgumentError("the fetch request was not understood"), out);
}

}  // namespace repotxn::daemon
