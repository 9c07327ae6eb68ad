// Consumers: named readers of a store's committed entries, for effects that must follow a commit.
//
// A commit may be followed by work outside the store: a webhook, a search index, a mirror. Done by the committer it is
// lost when the process dies between commit and effect; done in the body it happens for transactions that never commit.
// A consumer reads the log instead. Whatever was committed reaches it, in LSN order, at least once, over restarts and
// crashes [hard case B23].
//
//   store->CreateConsumer("mail", {});                      // once; what is committed from now on
//   while (true) {
//     auto entries = store->NextEntries("mail", {});        // waits
//     if (!entries.ok()) break;                             // closing, interrupted, or dropped
//     for (const ConsumedEntry& entry : *entries) Send(entry);      // must bear being repeated
//     store->AcknowledgeEntries("mail", entries->back().lsn);       // only now
//   }
//
// Position. What a consumer has acknowledged is a durable row of the store. NextEntries() gives what lies behind it:
// without an acknowledgement the same entries again. An acknowledgement is not synced by itself: after a power failure
// the last ones may be gone, and their entries come again; they are never skipped. CreateConsumer() and DropConsumer()
// are durable when they return.
//
// Retention. The log and large manifests are kept until every consumer has acknowledged them. The low-water mark is
// computed from positions that are synced before anything is removed [hard case B15]. A consumer that lags by more than
// StoreOptions::consumer_bytes_max is dropped and marked, durably: it holds nothing any more, and NextEntries() tells it
// so (kOutOfRange) until its owner takes note with DropConsumer(). One that is stuck or fails delays no other consumer,
// no commit and no checkpoint [B14].
//
// Names of repositories. An entry names repositories by id; the id is what to remember. `path` is a help for people: the
// path that the entry itself gave the repository, else the one of its catalogue row when the entry is delivered, else
// (removed since) empty. Not the row at the entry's own LSN: old versions of rows live as long as a snapshot that needs
// them, and a consumer that pinned one for each entry it has yet to read would hold back memory and the removal of
// files, which a slow consumer must not.
//
// LSNs mean something within one incarnation of a store only: tell Store::incarnation() with them [hard case B25].
#ifndef REPOTXN_TXN_CONSUMERS_H_
#define REPOTXN_TXN_CONSUMERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "refs/ref_value.h"
#include "storage/id128.h"
#include "wal/lsn.h"

namespace repotxn::txn {

struct ConsumerStart {
  // First entry to be delivered; it must still be in the log. None: what is committed after the call.
  std::optional<wal::Lsn> from;
};

struct NextOptions {
  // Most entries of one answer. Range [1, 10000].
  int entries_max = 100;
  // An answer ends with the entry that brings it to this many bytes, as they stood in the log.
  int64_t bytes_max = 8 << 20;
  // Longest time to wait for the first entry; zero: do not wait.
  absl::Duration wait = absl::InfiniteDuration();
};

// A change of one ref. Values: absent, an object, or (HEAD) a symbolic target.
struct ConsumedRefChange {
  RepositoryId repository;
  std::string path;  // see above; may be empty
  std::string ref;   // bytes; not necessarily UTF-8
  refs::RefValue old_value, new_value;

  friend bool operator==(const ConsumedRefChange&, const ConsumedRefChange&) = default;
};

// A repository that came, went, or has another path. One that is brought back has another path than none: kMoved. Its
// purge is no change: it went when it was deleted.
struct ConsumedRepositoryChange {
  enum class Kind : uint8_t { kCreated, kRemoved, kMoved };
  Kind kind = Kind::kCreated;
  RepositoryId repository;
  std::string path;  // the new one

  friend bool operator==(const ConsumedRepositoryChange&, const ConsumedRepositoryChange&) = default;
};

// One committed transaction. Those of the store's own, which pack refs and change no value, are delivered too, without
// changes, so that LSNs are dense.
struct ConsumedEntry {
  wal::Lsn lsn;
  TransactionId transaction_id;
  absl::Time created_at;
  std::string actor, origin;
  std::vector<std::string> push_options;
  std::vector<ConsumedRepositoryChange> repository_changes;
  std::vector<ConsumedRefChange> ref_changes;
};

struct ConsumerInfo {
  std::string name;
  wal::Lsn acknowledged;
  bool is_dropped = false;  // lagged too far; waits for DropConsumer()
  // What it has yet to acknowledge; bytes of log, about.
  int64_t lag_entries = 0;
  int64_t lag_bytes = 0;
};

// 1 to 64 characters of [A-Za-z0-9._-]; kInvalidArgument otherwise.
absl::Status CheckConsumerName(absl::string_view name);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_CONSUMERS_H_
