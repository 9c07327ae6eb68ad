// How an answer is written: text for people, or one JSON document.
//
// Bytes that are not UTF-8 (ref names may hold them) are replaced in JSON text; where a name was
// changed by that, a field `<name>_hex` beside it has all its bytes.
#ifndef REPOTXN_CLI_ANSWER_H_
#define REPOTXN_CLI_ANSWER_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "admin/call.h"
#include "cli/findings.h"

namespace repotxn::cli {

using admin::Json;
using admin::SetBytes;

// One document, indented, newline at the end.
void WriteJson(std::ostream& out, const Json& document);

// {"code": "not_found", "message": ...}
Json ErrorToJson(const absl::Status& status);

// {"ok": ..., "findings": [...], "notes": [...], "looked_at": {...}}
Json FindingsToJson(const Findings& findings);
void WriteFindings(std::ostream& out, const Findings& findings);

// `text` with control bytes as \xNN, so that a name cannot forge a line.
std::string Printable(const std::string& text);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_ANSWER_H_
