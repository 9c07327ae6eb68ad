#include "objects/pack_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr int kReadingsMax = 100;

struct Listed {
  std::string name;
  bool is_condemned = false;

  friend bool operator==(const Listed&, const Listed&) = default;
};

absl::StatusOr<std::vector<Listed>> ReadOnce(storage::FileSystem& fs, const storage::StorePath& directory,
                                             absl::FunctionRef<bool(absl::string_view)> is_condemned) {
  const auto entries = fs.List(directory);
  std::vector<Listed> listed;
  if (absl::IsNotFound(entries.status())) return listed;
  if (!entries.ok()) return entries.status();
  std::vector<absl::string_view> packs, indexes;
  for (const storage::DirectoryEntry& entry : *entries) {
    absl::string_view name = entry.name;
    if (absl::ConsumeSuffix(&name, ".pack")) packs.push_back(name);
    if (absl::ConsumeSuffix(&name, ".idx")) indexes.push_back(name);
  }
  std::sort(packs.begin(), packs.end());
  std::sort(indexes.begin(), indexes.end());
  for (const absl::string_view name : indexes) {
    // The index comes last, so a pack without one is not finished; an index alone is a leftover.
    if (!std::binary_search(packs.begin(), packs.end(), name)) continue;
    listed.push_back({std::string(name.data(), name.size()), is_condemned(name)});
  }
  return listed;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListPackNames(storage::FileSystem& fs, const storage::StorePath& directory,
                                                       absl::FunctionRef<bool(absl::string_view name)> is_condemned) {
  REPOTXN_ASSIGN_OR_RETURN(std::vector<Listed> before, ReadOnce(fs, directory, is_condemned));
  for (int reading = 0; reading < kReadingsMax; ++reading) {
    REPOTXN_ASSIGN_OR_RETURN(std::vector<Listed> listed, ReadOnce(fs, directory, is_condemned));
    if (listed == before) {
      std::vector<std::string> names;
      for (Listed& pack : listed) {
        if (!pack.is_condemned) names.push_back(std::move(pack.name));
      }
      return names;
    }
    before = std::move(listed);
  }
  return absl::UnavailableError("packs of the repository change all the time");
}

}  // namespace repotxn::objects
