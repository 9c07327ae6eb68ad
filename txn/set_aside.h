// What the metadata store keeps of a repository whose directory cannot be written: the changes that are committed and not
// on its disk, so that the applied position may pass them and one broken directory never holds the log, and with it
// everybody, back [hard case B14].
//
// Format. One row a repository, "m/aside/<id in hex>": the encoding (wal/manifest_codec.h) of a manifest that brings the
// directory from whatever it shows to the state at the applied position. Its file contents are all inline; the old values
// of its ref changes mean nothing.
//
// The row is written, replaced and removed in one synced batch with the applied position (StoreCore::Checkpoint): it holds
// exactly the changes at or below that position that no disk has. If we die before the batch is durable, the old position
// and the old row hold, and the log has the rest; after it, the new ones do. At open the row's changes come first, then the
// tail of the log over them. A row goes when a batch of the repository was written and a sync has followed.
//
// Pure.
#ifndef REPOTXN_TXN_SET_ASIDE_H_
#define REPOTXN_TXN_SET_ASIDE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/id128.h"
#include "txn/entry_effects.h"
#include "txn/repository_state.h"

namespace repotxn::txn {

inline constexpr absl::string_view kSetAsidePrefix = "m/aside/";
std::string SetAsideKey(const RepositoryId& id);

// The value of the row. `changes` has each name once; `id` is any transaction id that is not zero.
std::string EncodeSetAside(const RepositoryId& repository, const RepositoryState::Changes& changes,
                           const TransactionId& id, absl::Time now);

// kDataLoss when key and value are not one such row.
absl::StatusOr<RepositoryEffects> DecodeSetAside(absl::string_view key, absl::string_view value);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_SET_ASIDE_H_
