#include "cli/adoption.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/answer.h"
#include "cli/exit_code.h"
#include "storage/status_macros.h"
#include "txn/store.h"

namespace repotxn::cli {
namespace {

txn::StoreOptions OpenOptions() {
  txn::StoreOptions options;
  // A daemon that holds the store will not let go of it while we wait.
  options.lock_wait = absl::Seconds(3);
  return options;
}

Json FindingsOf(const std::vector<txn::AdoptionFinding>& findings) {
  Json list = Json::array();
  for (const txn::AdoptionFinding& finding : findings) {
    Json item;
    SetBytes(item, "path", finding.path);
    SetBytes(item, "reason", finding.reason);
    list.push_back(std::move(item));
  }
  return list;
}

Json ReportToJson(const txn::AdoptionReport& report) {
  Json document;
  SetBytes(document, "source", report.source);
  document["path"] = report.path;
  document["adopted"] = report.is_adopted();
  if (report.is_adopted()) {
    document["id"] = report.id.ToHex();
    document["lsn"] = report.lsn.value();
    document["trash"] = report.trash;
  }
  document["refs"] = report.refs;
  document["objects"] = report.objects;
  document["set_aside"] = FindingsOf(report.set_aside);
  document["refusals"] = FindingsOf(report.refusals);
  document["borrows_from"] = report.borrows_from;
  Json holes = Json::array();
  for (const objects::MissingLink& link : report.missing_links) {
    holes.push_back(Json{{"referrer", link.referrer.ToHex()}, {"missing", link.missing.ToHex()}});
  }
  document["missing"] = std::move(holes);
  return document;
}

void WriteReport(std::ostream& out, const txn::AdoptionReport& report) {
  out << Printable(report.source) << " -> " << report.path;
  if (report.is_adopted()) {
    out << ": adopted, id " << report.id.ToHex() << ", LSN " << report.lsn.value() << "\n";
  } else {
    out << (report.refusals.empty() ? ": can be adopted\n" : ": not adopted\n");
  }
  for (const txn::AdoptionFinding& finding : report.refusals) {
    out << "  refused    " << Printable(finding.path) << ": " << Printable(finding.reason) << "\n";
  }
  for (const txn::AdoptionFinding& finding : report.set_aside) {
    out << "  set aside  " << Printable(finding.path) << ": " << Printable(finding.reason) << "\n";
  }
  for (const objects::MissingLink& link : report.missing_links) {
    out << "  missing    " << link.missing.ToHex() << ", named by " << link.referrer.ToHex() << "\n";
  }
  if (!report.trash.empty() && !report.set_aside.empty()) out << "  moved to   " << report.trash << "\n";
}

absl::StatusOr<std::vector<txn::AdoptionReport>> Adopt(const CommandLine& command, txn::Store& store) {
  txn::AdoptOptions options;
  options.dry_run = command.dry_run;
  if (command.tree) return store.AdoptTree(command.directory, command.repository.text(), options);
  REPOTXN_ASSIGN_OR_RETURN(txn::AdoptionReport report,
                           store.Adopt(command.directory, command.repository, options));
  return std::vector<txn::AdoptionReport>{std::move(report)};
}

}  // namespace

Outcome RunAdopt(const CommandLine& command, const std::string& root, std::ostream& out) {
  return WithStore(root, OpenOptions(), [&](txn::Store& store) -> Outcome {
    const auto reports = Adopt(command, store);
    if (!reports.ok()) return Outcome::Refused(reports.status());
    Outcome outcome;
    Json list = Json::array();
    for (const txn::AdoptionReport& report : *reports) {
      if (!report.refusals.empty()) outcome.code = ExitCode::kFoundWrong;
      if (command.json) {
        list.push_back(ReportToJson(report));
      } else {
        WriteReport(out, report);
      }
    }
    if (command.json) WriteJson(out, Json{{"repositories", std::move(list)}});
    return outcome;
  });
}

Outcome RunUnadopt(const CommandLine& command, const std::string& root, std::ostream& out) {
  return WithStore(root, OpenOptions(), [&](txn::Store& store) -> Outcome {
    RepositoryId id;
    {
      txn::BeginOptions begin;
      begin.access = txn::Access::kReadOnly;
      const auto transaction = store.Begin(begin);
      if (!transaction.ok()) return Outcome::Refused(transaction.status());
      const auto opened = (*transaction)->OpenRepository(command.repository);
      if (!opened.ok()) return Outcome::Refused(opened.status());
      id = *opened;
    }
    if (absl::Status given = store.Unadopt(id, command.directory); !given.ok()) {
      return Outcome::Refused(std::move(given));
    }
    if (command.json) {
      WriteJson(out, Json{{"id", id.ToHex()}, {"directory", command.directory}});
    } else {
      out << "gave " << command.repository.text() << " back at " << Printable(command.directory) << "\n";
    }
    return {};
  });
}

Outcome RunReconcile(const CommandLine& command, const std::string& root, std::ostream& out) {
  return WithStore(root, OpenOptions(), [&](txn::Store& store) -> Outcome {
    txn::ReconcileOptions options;
    options.dry_run = command.dry_run;
    options.misses_min = 1;
    options.grace = absl::ZeroDuration();
    options.acts_max = 1000;
    const auto report = store.Reconcile(options);
    if (!report.ok()) return Outcome::Refused(report.status());
    Json found = Json::array();
    for (const txn::Discrepancy& one : report->found) {
      const bool is_mended =
          std::find(report->acted.begin(), report->acted.end(), one) != report->acted.end();
      const absl::string_view name = txn::DiscrepancyName(one.kind);
      if (command.json) {
        Json item;
        item["kind"] = std::string(name.data(), name.size());
        SetBytes(item, "path", one.path);
        SetBytes(item, "detail", one.detail);
        item["mended"] = is_mended;
        found.push_back(std::move(item));
      } else {
        out << name << "  " << Printable(one.path) << (is_mended ? "  mended" : "")
            << (one.detail.empty() ? "" : "  " + Printable(one.detail)) << "\n";
      }
    }
    if (command.json) WriteJson(out, Json{{"found", std::move(found)}});
    if (!command.json && report->found.empty()) out << "catalogue and disk agree\n";
    return {report->found.empty() ? ExitCode::kOk : ExitCode::kFoundWrong, absl::OkStatus()};
  });
}

}  // namespace repotxn::cli
