#include "cli/commands.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/admin_command.h"
#include "cli/answer.h"
#include "cli/log_entries.h"
#include "cli/session.h"
#include "cli/verify.h"
#include "storage/log.h"
#include "storage/status_macros.h"

namespace repotxn::cli {
namespace {

std::string Text(absl::string_view view) { return std::string(view.data(), view.size()); }

txn::StoreOptions OpenOptions() {
  txn::StoreOptions options;
  // A daemon that holds the store will not let go of it while we wait.
  options.lock_wait = absl::Seconds(3);
  return options;
}

Outcome RunInit(const CommandLine& command, const std::string& root, std::ostream& out) {
  if (OpenRoot(root).ok())
    return Outcome::Refused(absl::AlreadyExistsError("there is a store already"));
  txn::StoreOptions options = OpenOptions();
  options.create_if_missing = true;
  const Outcome outcome = WithStore(root, options, [](txn::Store&) { return Outcome{}; });
  if (outcome.code != ExitCode::kOk) return outcome;
  if (command.json) {
    WriteJson(out, Json{{"ok", true}});
  } else {
    out << "made an empty store\n";
  }
  return outcome;
}

Outcome RunRecover(const CommandLine& command, const std::string& root, std::ostream& out) {
  txn::StoreOptions options;  // the whole lock_wait: children of a dead daemon may still be going
  txn::RecoveryReport report;
  uint64_t committed = 0;
  const Outcome outcome = WithStore(root, options, [&](txn::Store& store) -> Outcome {
    report = store.recovery_report();
    committed = store.committed_lsn().value();
    return {};
  });
  if (outcome.code != ExitCode::kOk) return outcome;
  if (command.json) {
    Json document;
    document["was_clean"] = report.was_clean;
    document["entries_redone"] = report.entries_redone;
    document["torn_bytes_cut"] = report.torn_bytes_cut;
    document["lost_found"] = report.lost_found;
    document["committed_lsn"] = committed;
    WriteJson(out, document);
    return outcome;
  }
  out << (report.was_clean ? "the store had been closed cleanly\n"
                           : "the store had not been closed cleanly\n")
      << "entries redone: " << report.entries_redone << "\n"
      << "bytes of a torn tail cut: " << report.torn_bytes_cut << "\n";
  for (const std::string& path : report.lost_found)
    out << "moved to lost-found: " << Printable(path) << "\n";
  out << "at rest at LSN " << committed << "; stock Git may read its repositories now\n";
  return outcome;
}

// {"name", "acknowledged_lsn", "dropped", "lag_entries", "lag_bytes"}
Json ConsumerToJson(const txn::ConsumerInfo& consumer) {
  Json item;
  item["name"] = consumer.name;
  item["acknowledged_lsn"] = consumer.acknowledged.value();
  item["dropped"] = consumer.is_dropped;
  item["lag_entries"] = consumer.lag_entries;
  item["lag_bytes"] = consumer.lag_bytes;
  return item;
}

Outcome RunConsumersList(const CommandLine& command, const std::string& root, std::ostream& out) {
  return WithStore(root, OpenOptions(), [&](txn::Store& store) -> Outcome {
    Json list = Json::array();
    for (const txn::ConsumerInfo& consumer : store.ListConsumers()) {
      if (command.json) {
        list.push_back(ConsumerToJson(consumer));
      } else {
        out << consumer.name << "  acknowledged LSN " << consumer.acknowledged.value() << "  behind by "
            << consumer.lag_entries << " entries, " << consumer.lag_bytes << " bytes"
            << (consumer.is_dropped ? "  DROPPED" : "") << "\n";
      }
    }
    if (command.json) WriteJson(out, Json{{"consumers", std::move(list)}});
    return {};
  });
}

Outcome RunConsumersDrop(const CommandLine& command, const std::string& root, std::ostream& out) {
  return WithStore(root, OpenOptions(), [&](txn::Store& store) -> Outcome {
    if (absl::Status dropped = store.DropConsumer(command.consumer); !dropped.ok()) {
      return Outcome::Refused(std::move(dropped));
    }
    if (command.json) {
      WriteJson(out, Json{{"ok", true}});
    } else {
      out << "removed consumer " << command.consumer << "\n";
    }
    return {};
  });
}

Outcome Dispatch(const CommandLine& command, std::ostream& out, std::ostream& err) {
  const std::string root = AbsoluteStorePath(command.store);
  switch (command.verb) {
    case Verb::kHelp:
      out << UsageText();
      return {};
    case Verb::kVersion:
      out << VersionText();
      return {};
    case Verb::kInit:
      return RunInit(command, root, out);
    case Verb::kAdmin:
      return RunAdminVerb(command, root, out, err);
    case Verb::kLogList:
      return RunLogList(command, root, out);
    case Verb::kLogShow:
      return RunLogShow(command, root, out);
    case Verb::kLogVerify:
      return RunLogVerify(command, root, out);
    case Verb::kRecover:
      return RunRecover(command, root, out);
    case Verb::kVerify:
      return RunVerify(command, root, out);
    case Verb::kConsumersList:
      return RunConsumersList(command, root, out);
    case Verb::kConsumersDrop:
      return RunConsumersDrop(command, root, out);
  }
  return {ExitCode::kUsage, absl::InvalidArgumentError("unknown command")};
}

// Details of an error (who holds the store, which ref, what was expected) travel as payloads.
std::string Details(const absl::Status& status) {
  std::string details;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    absl::StrAppend(&details, details.empty() ? " (" : ", ", url.substr(url.rfind('/') + 1), " ",
                    Printable(std::string(payload)));
  });
  return details.empty() ? details : details + ")";
}

}  // namespace

ExitCode RunCommand(const CommandLine& command, std::ostream& out, std::ostream& err) {
  const Outcome outcome = Dispatch(command, out, err);
  if (!outcome.status.ok()) {
    if (command.json) WriteJson(out, Json{{"error", ErrorToJson(outcome.status)}});
    err << "repotxn: " << (outcome.code == ExitCode::kCannotOpen && !command.store.empty() ? "cannot open the store: " : "")
        << Printable(Text(outcome.status.message())) << Details(outcome.status) << "\n";
  }
  out.flush();
  return outcome.code;
}

ExitCode Main(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  storage::SetLogLevel(storage::LogLevel::kWarning);
  const auto command = ParseCommandLine(arguments);
  if (!command.ok()) {
    err << "repotxn: " << Printable(Text(command.status().message())) << "\n\n" << UsageText();
    return ExitCode::kUsage;
  }
  return RunCommand(*command, out, err);
}

}  // namespace repotxn::cli
