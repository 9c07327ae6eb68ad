// Lists the packs of an object directory that answers may come from, as they stood at one moment.
//
// A merge links its pack, and then those it has merged are condemned: a directory that is read before the first and judged after
// the second would show neither. And a pack may need another that was linked before it, while a listing that is under way may
// show the second alone. So two readings in a row that say the same of every pack.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_PACK_LIST_H_
#define REPOTXN_OBJECTS_PACK_LIST_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/store_path.h"

namespace repotxn::objects {

// Stems ("pack-<hex>") of packs in `directory` (objects/pack) that have both .pack and .idx and of which `is_condemned` is not
// true, ascending. A missing directory holds none. kUnavailable: they change all the time.
absl::StatusOr<std::vector<std::string>> ListPackNames(
    storage::FileSystem& fs, const storage::StorePath& directory,
    absl::FunctionRef<bool(absl::string_view name)> is_condemned);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_PACK_LIST_H_
