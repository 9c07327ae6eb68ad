#include "cli/admin_command.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/answer.h"
#include "cli/backend.h"
#include "storage/status_macros.h"

namespace repotxn::cli {
namespace {

using admin::Reply;

constexpr int kPageMax = 1000;

std::string Text(const Json& value) {
  return Printable(value.is_string() ? value.get<std::string>() : value.dump());
}

// The bytes that `name` of an answer stands for.
std::string BytesOf(const Json& object, const std::string& name) {
  if (object.contains(name + "_hex")) {
    return absl::HexStringToBytes(object[name + "_hex"].get<std::string>());
  }
  return object.value(name, "");
}

// All pages of a list as one answer; the first refusal ends it.
absl::StatusOr<Reply> SendPages(Backend& backend, const AdminVerb& verb, admin::Call call) {
  int left = 0;  // 0: no bound
  const auto limit = call.query.find("limit");
  if (limit != call.query.end() && !absl::SimpleAtoi(limit->second, &left)) left = 0;
  const bool is_bounded = left > 0;
  Reply all;
  all.body[verb.list] = Json::array();
  while (true) {
    call.query["limit"] = absl::StrCat(is_bounded ? std::min(left, kPageMax) : kPageMax);
    REPOTXN_ASSIGN_OR_RETURN(Reply page, backend.Send(call));
    if (!page.ok()) return page;
    for (Json& item : page.body[verb.list]) all.body[verb.list].push_back(std::move(item));
    left -= kPageMax;
    if (!page.body.contains("next") || (is_bounded && left <= 0)) {
      if (page.body.contains("next")) all.body["next"] = page.body["next"];
      return all;
    }
    call.query[verb.page] = BytesOf(page.body, "next");
  }
}

// What `repo show` shows beside the row: all refs.
absl::Status AddRefs(Backend& backend, const CommandLine& command, Reply& reply) {
  const AdminVerb& list = *FindAdminVerb({"refs", "list"});
  REPOTXN_ASSIGN_OR_RETURN(admin::Call call, list.call(command.arguments));
  REPOTXN_ASSIGN_OR_RETURN(Reply refs, SendPages(backend, list, std::move(call)));
  if (!refs.ok()) {
    reply = std::move(refs);
  } else {
    reply.body["refs"] = std::move(refs.body["refs"]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Reply> Send(Backend& backend, const CommandLine& command) {
  const AdminVerb& verb = *command.admin;
  REPOTXN_ASSIGN_OR_RETURN(admin::Call call, verb.call(command.arguments));
  if (!verb.page.empty()) return SendPages(backend, verb, std::move(call));
  REPOTXN_ASSIGN_OR_RETURN(Reply reply, backend.Send(call));
  if (reply.ok() && verb.words == std::vector<std::string>{"repo", "show"}) {
    REPOTXN_RETURN_IF_ERROR(AddRefs(backend, command, reply));
  }
  return reply;
}

void WriteLine(const Json& item, const std::vector<std::string>& columns, std::ostream& out) {
  const char* separator = "";
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == "path" && !item.contains("path")) continue;
    out << std::exchange(separator, "  ") << (item.contains(columns[i]) ? Text(item[columns[i]]) : "-");
  }
  out << "\n";
}

// The list that an answer is.
const Json& ListOf(const AdminVerb& verb, const Json& body) {
  static const Json* const none = new Json(Json::array());
  const Json::json_pointer place(verb.list[0] == '/' ? verb.list : "/" + verb.list);
  if (body.contains(place)) return body.at(place);
  return body.contains("tasks") ? body["tasks"] : *none;
}

void WriteText(const AdminVerb& verb, const Json& body, std::ostream& out) {
  if (!verb.shown.empty()) {
    out << BytesOf(body, verb.shown);
    return;
  }
  if (!verb.list.empty()) {
    for (const Json& item : ListOf(verb, body)) WriteLine(item, verb.columns, out);
    return;
  }
  size_t width = 0;
  for (const auto& [name, value] : body.items()) width = std::max(width, name.size());
  for (const auto& [name, value] : body.items()) {
    out << name << std::string(width - name.size() + 2, ' ');
    if (!value.is_array()) {
      out << Text(value) << "\n";
      continue;
    }
    out << value.size() << "\n";
    for (const Json& item : value) {
      out << "  ";
      WriteLine(item, name == "refs" ? std::vector<std::string>{"value", "name"} : verb.columns, out);
    }
  }
}

// One line: the message and everything that the detail says.
void Complain(const Json& body, std::ostream& err) {
  err << "repotxn: ";
  if (body.contains("error") && body["error"].is_object()) {
    const Json& error = body["error"];
    err << Text(error.value("message", Json("no reason given")));
    const char* separator = " (";
    const Json detail = error.value("detail", Json::object());
    for (const auto& [name, value] : detail.items()) {
      err << separator << name << " " << Text(value);
      separator = ", ";
    }
    err << (detail.empty() ? "" : ")");
  }
  if (body.contains("ask")) err << "; ask with `outcome " << Text(body["transaction_id"]) << "`";
  err << "\n";
}

// Replaces --content-of by what is in the file.
absl::Status ReadContent(AdminArguments& arguments) {
  const auto option = arguments.options.find(std::string(kContentOf));
  if (option == arguments.options.end()) return absl::OkStatus();
  std::ifstream file(option->second, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) return absl::InvalidArgumentError(absl::StrCat("cannot read ", option->second));
  arguments.options.erase(option);
  arguments.operands.push_back(std::move(content));
  return absl::OkStatus();
}

ExitCode CodeOf(const Reply& reply) {
  const bool is_refusal = reply.body.contains("error") || !reply.ok();
  if (!is_refusal) return ExitCode::kOk;
  return reply.body.value("outcome", "") == "unknown" ? ExitCode::kUnknown : ExitCode::kRefused;
}

Outcome Show(const CommandLine& command, const absl::StatusOr<Reply>& reply, std::ostream& out,
             std::ostream& err) {
  if (!reply.ok()) {
    if (absl::IsInvalidArgument(reply.status())) return {ExitCode::kUsage, reply.status()};
    return Outcome::CannotOpen(reply.status());
  }
  const ExitCode code = CodeOf(*reply);
  // A refusal that tells how far it came is shown like an answer.
  const bool has_answer = code == ExitCode::kOk || reply->body.contains(command.admin->list);
  if (command.json) {
    WriteJson(out, reply->body);
  } else if (has_answer) {
    WriteText(*command.admin, reply->body, out);
  }
  if (code != ExitCode::kOk) Complain(reply->body, err);
  return {code, absl::OkStatus()};
}

}  // namespace

Outcome RunAdminVerb(CommandLine command, const std::string& root, std::ostream& out, std::ostream& err) {
  if (absl::Status read = ReadContent(command.arguments); !read.ok()) return {ExitCode::kUsage, read};
  if (!command.server.empty()) {
    const auto backend = ConnectToServer(command.server, command.token_file);
    if (!backend.ok()) return {ExitCode::kUsage, backend.status()};
    return Show(command, Send(**backend, command), out, err);
  }
  txn::StoreOptions options;
  // A daemon that holds the store will not let go of it while we wait.
  options.lock_wait = absl::Seconds(3);
  return WithStore(root, options, [&](txn::Store& store) {
    StoreBackend backend(&store);
    return Show(command, Send(backend, command), out, err);
  });
}

}  // namespace repotxn::cli
