// Log entries as JSON documents.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_CLI_ENTRY_JSON_H_
#define REPOTXN_CLI_ENTRY_JSON_H_

#include "cli/answer.h"
#include "cli/log_entries.h"

namespace repotxn::cli {

// {"lsn", "transaction_id", "bytes", "created_at", "summary"}: "put_file 2, add_pack 1, refs 3".
Json SummaryToJson(const LogRecord& record);
// Operations one by one (contents by size alone, ids and names in full) and the note.
Json EntryToJson(const LogRecord& record);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_ENTRY_JSON_H_
