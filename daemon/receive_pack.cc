#include "daemon/receive_pack.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/band_writer.h"
#include "daemon/borrowed_tips.h"
#include "daemon/error_reply.h"
#include "daemon/pkt_line.h"
#include "daemon/push_judge.h"
#include "daemon/push_session.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kWriteBytes = 64 << 10;
constexpr absl::string_view kRequestType = "application/x-git-receive-pack-request";
constexpr absl::string_view kResultType = "application/x-git-receive-pack-result";
constexpr absl::string_view kAdvertisementType = "application/x-git-receive-pack-advertisement";
// Stands in for a name that a client must not see as a ref.
constexpr const char* kBorrowedName = ".have";

const HeaderList& NoCache() {
  static const HeaderList* const list = new HeaderList{{"Cache-Control", "no-cache"}};
  return *list;
}

// What is shown to a client.
struct Advertised {
  ObjectFormat format = ObjectFormat::kSha1;
  std::vector<std::pair<std::string, ObjectId>> refs;
  std::vector<ObjectId> borrowed;
};

absl::StatusOr<Advertised> ReadAdvertised(txn::Store* store, const txn::RepositoryPath& path,
                                          bool create_on_push, absl::Time deadline) {
  Advertised shown;
  txn::BeginOptions begin;
  begin.access = txn::Access::kReadOnly;
  begin.deadline = deadline;
  REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<txn::Transaction> txn, store->Begin(begin));
  absl::StatusOr<RepositoryId> id = txn->OpenRepository(path);
  if (absl::IsNotFound(id.status()) && create_on_push) return shown;
  REPOTXN_RETURN_IF_ERROR(id.status());
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryInfo info, txn->Describe(*id));
  shown.format = info.format;
  REPOTXN_ASSIGN_OR_RETURN(const PushPolicy policy, ReadPushPolicy(*txn, *id));
  REPOTXN_ASSIGN_OR_RETURN(const auto refs, txn->ListRefs(*id, ""));
  for (const auto& [name, value] : refs) {
    if (policy.IsHidden(name.text())) continue;
    ObjectId oid = value.oid();
    if (value.is_symbolic()) {
      REPOTXN_ASSIGN_OR_RETURN(const refs::RefValue resolved, ReadResolved(*txn, *id, name));
      oid = resolved.oid();
    }
    if (!oid.empty()) shown.refs.emplace_back(name.text(), oid);
  }
  absl::flat_hash_set<ObjectId> known;
  for (const auto& [name, oid] : shown.refs) known.insert(oid);
  REPOTXN_ASSIGN_OR_RETURN(shown.borrowed, BorrowedTips(*txn, *id, std::move(known)));
  return shown;
}

std::string Capabilities(ObjectFormat format) {
  return absl::StrCat(
      "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta "
      "push-options object-format=",
      ObjectFormatName(format), " agent=repotxn");
}

// Reads the body up to the end of the commands.
absl::Status ReadRequest(const BodyReader& body, PushRequestParser* parser) {
  std::vector<char> buffer(kReadBytes);
  while (!parser->is_complete()) {
    REPOTXN_ASSIGN_OR_RETURN(const size_t size, body(absl::MakeSpan(buffer)));
    if (size == 0) return parser->Finish();
    REPOTXN_RETURN_IF_ERROR(parser->Feed(absl::string_view(buffer.data(), size)));
  }
  return absl::OkStatus();
}

// The pack: what was read with the commands, then the rest of the body.
txn::ByteSource PackSource(std::string prefix, const BodyReader& body) {
  const BodyReader first = TextBody(std::move(prefix));
  return [first, &body, is_first = true](absl::Span<char> out) mutable -> absl::StatusOr<size_t> {
    if (is_first) {
      REPOTXN_ASSIGN_OR_RETURN(const size_t size, first(out));
      if (size > 0) return size;
      is_first = false;
    }
    return body(out);
  };
}

}  // namespace

void ReceivePack::Advertise(const txn::RepositoryPath& path, const HttpRequest& request,
                            ResponseWriter& out) {
  absl::StatusOr<Advertised> shown =
      ReadAdvertised(store_, path, options_.create_on_push, request.deadline);
  if (!shown.ok()) return ReplyTextError(shown.status(), out);

  out.Start(200, kAdvertisementType, NoCache());
  std::string text;
  AppendPkt("# service=git-receive-pack\n", &text);
  AppendFlush(&text);
  const std::string capabilities = Capabilities(shown->format);
  if (shown->refs.empty() && shown->borrowed.empty()) {
    std::string line =
        absl::StrCat(ObjectId::Zero(shown->format).ToHex(), " capabilities^{}");
    line.push_back('\0');
    AppendPkt(absl::StrCat(line, capabilities, "\n"), &text);
  }
  bool is_first = true;
  std::vector<std::pair<std::string, ObjectId>> lines = std::move(shown->refs);
  for (const ObjectId& oid : shown->borrowed) lines.emplace_back(kBorrowedName, oid);
  for (const auto& [name, oid] : lines) {
    std::string line = absl::StrCat(oid.ToHex(), " ", name);
    if (is_first) {
      line.push_back('\0');
      line += capabilities;
    }
    is_first = false;
    line.push_back('\n');
    AppendPkt(line, &text);
    if (text.size() >= kWriteBytes) {
      if (!out.Write(text).ok()) return;
      text.clear();
    }
  }
  AppendFlush(&text);
  IgnoreBecause(out.Write(text), "a client that is gone needs no answer");
}

void ReceivePack::Push(const txn::RepositoryPath& path, absl::string_view actor,
                       const HttpRequest& request, const BodyReader& body, ResponseWriter& out) {
  if (request.Header("content-type") != kRequestType) {
    return out.Reply(415, "text/plain", "not a push request\n");
  }
  PushRequestParser parser(options_.request_limits);
  absl::Status status = ReadRequest(body, &parser);
  if (!status.ok()) return ReplyTextError(status, out);
  if (parser.request().is_probe()) return out.Reply(200, kResultType, "", NoCache());

  PushSession::Context context;
  context.store = store_;
  context.options = &options_;
  context.changes = &recent_changes_;
  context.path = path;
  context.actor = std::string(actor.data(), actor.size());
  context.origin = request.peer;
  context.deadline = request.deadline;
  PushSession session(std::move(context), parser.request());
  status = session.Prepare();
  if (!status.ok()) return ReplyTextError(status, out);

  out.Start(200, kResultType, NoCache());
  BandWriter bands(out, parser.request().capabilities, options_.keep_alive_interval);
  const PushReport report = session.Execute(PackSource(parser.TakePackPrefix(), body), bands);
  bands.Finish(report);
}

}  // namespace repotxn::daemon
