#include "cli/answer.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace repotxn::cli {
namespace {

Json ToJson(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    Json item;
    item["check"] = finding.check;
    SetBytes(item, "subject", finding.subject);
    SetBytes(item, "text", finding.text);
    list.push_back(std::move(item));
  }
  return list;
}

void WriteList(std::ostream& out, absl::string_view kind, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    out << kind << " [" << finding.check << "] " << Printable(finding.subject) << ": "
        << Printable(finding.text) << "\n";
  }
}

}  // namespace

void WriteJson(std::ostream& out, const Json& document) {
  out << admin::JsonText(document, 2);
}

Json ErrorToJson(const absl::Status& status) {
  Json error;
  error["code"] = absl::AsciiStrToLower(absl::StatusCodeToString(status.code()));
  error["message"] = std::string(status.message().data(), status.message().size());
  return error;
}

Json FindingsToJson(const Findings& findings) {
  Json document;
  document["ok"] = findings.empty();
  document["findings"] = ToJson(findings.list());
  document["notes"] = ToJson(findings.notes());
  Json looked = Json::object();
  for (const auto& [check, count] : findings.looked()) looked[check] = count;
  document["looked_at"] = std::move(looked);
  return document;
}

void WriteFindings(std::ostream& out, const Findings& findings) {
  WriteList(out, "wrong", findings.list());
  WriteList(out, "note ", findings.notes());
  std::string looked;
  for (const auto& [check, count] : findings.looked()) {
    absl::StrAppend(&looked, looked.empty() ? "" : ", ", check, " ", count);
  }
  out << "looked at: " << looked << "\n";
  if (findings.empty()) {
    out << "everything is fine\n";
  } else {
    out << findings.list().size() << " things are wrong\n";
  }
}

std::string Printable(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&safe, "\\x%02x", byte);
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace repotxn::cli
