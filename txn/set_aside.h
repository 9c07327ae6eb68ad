// What the metadata store keeps of a repository whose directory cannot be written: the changes that are committed and not
// on its disk, so that the applied position may pass them and one broken directory never holds the log, and with it
// everybody, back [hard case B14].
//
// Format. Rows "m/aside/<id in hex>/<number in hex>" of a repository: each the encoding (wal/manifest_codec.h) of a manifest;
// together they bring the directory from whatever it shows to the state at the applied position, each name in one of them.
// File contents are all inline; the old values of ref changes mean nothing. A row holds about kSetAsideRowBytes, or one file.
//
// Rows are written, replaced and removed in one synced batch with the applied position (StoreCore::Checkpoint): they hold
// exactly the changes at or below that position that no disk has. If we die before the batch is durable, the old position
// and the old rows hold, and the log has the rest; after it, the new ones do. At open their changes come first, then the
// tail of the log over them. They go when a batch of the repository was written and a sync has followed.
//
// Pure.
#ifndef REPOTXN_TXN_SET_ASIDE_H_
#define REPOTXN_TXN_SET_ASIDE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/id128.h"
#include "txn/entry_effects.h"
#include "txn/repository_state.h"

namespace repotxn::txn {

inline constexpr absl::string_view kSetAsidePrefix = "m/aside/";
inline constexpr int64_t kSetAsideRowBytes = 16 << 20;
// What the keys of a repository begin with.
std::string SetAsidePrefix(const RepositoryId& id);

// The rows, key and value. `changes` has each name once; `id` is any transaction id that is not zero.
std::vector<std::pair<std::string, std::string>> EncodeSetAside(const RepositoryId& repository,
                                                                RepositoryState::Changes changes,
                                                                const TransactionId& id, absl::Time now,
                                                                int64_t row_bytes = kSetAsideRowBytes);

// kDataLoss when key and value are not one such row.
absl::StatusOr<RepositoryEffects> DecodeSetAside(absl::string_view key, absl::string_view value);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_SET_ASIDE_H_
