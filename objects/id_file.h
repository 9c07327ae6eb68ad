// A file of object ids, one hex line each (with a name, if one is given): what is too much for memory on its way from one Git
// child to the next.
//
// Externally synchronised by its owner. Durability: none; it lies in staging and is removed when
// the object goes.
//
// Lifetime: the file system must outlive it, the file its sources.
#ifndef REPOTXN_OBJECTS_ID_FILE_H_
#define REPOTXN_OBJECTS_ID_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "objects/git_child.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

class IdFile {
 public:
  // Makes the file, or empties it.
  static absl::StatusOr<std::unique_ptr<IdFile>> Create(storage::FileSystem* fs,
                                                        const storage::StorePath& path);
  ~IdFile();
  IdFile(const IdFile&) = delete;
  IdFile& operator=(const IdFile&) = delete;

  // `name`, without newlines, follows the id on its line: where an object was met, which helps Git to find deltas.
  absl::Status Append(const ObjectId& oid, absl::string_view name = "");
  // Ends the writing; before reading.
  absl::Status Finish();
  int64_t count() const { return count_; }

  // The lines, for a Git child.
  absl::StatusOr<InputSource> Lines() const;
  // Calls `visit` with each id, in order, until it gives an error.
  absl::Status ForEach(ObjectFormat format,
                       const std::function<absl::Status(const ObjectId&)>& visit) const;

 private:
  IdFile(storage::FileSystem* fs, storage::StorePath path);

  storage::FileSystem* const fs_;
  const storage::StorePath path_;
  std::unique_ptr<storage::WritableFile> file_;
  std::string buffer_;
  int64_t count_ = 0;
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_ID_FILE_H_
