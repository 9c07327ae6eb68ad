// A file of JSON lines, one for each committed entry that changes refs.
//
// Protocol
//   1. Open() cuts what stands behind the last newline.
//        Die here: cut again.
//   2. Deliver() appends the line and syncs the file.
//        Die here: a torn line at the end, cut by the next Open(), or a whole one; the entry is not acknowledged and
//        comes again, so a line may stand twice, and none is missing or half.
//   3. The caller acknowledges.
// After a failed sync nothing more is believed: every later Deliver() fails until the file is opened anew. A failed
// append is taken back.
//
// Externally synchronised: one thread delivers.
#ifndef REPOTXN_DAEMON_EVENT_FILE_H_
#define REPOTXN_DAEMON_EVENT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/event_sink.h"
#include "storage/file_system.h"

namespace repotxn::daemon {

class EventFile final : public EventSink {
 public:
  // Opens or makes the file at `name` below `fs`, which must outlive the result. Errors: those of the file system.
  static absl::StatusOr<std::unique_ptr<EventFile>> Open(storage::FileSystem* fs, const storage::StorePath& name,
                                                         const StoreId& incarnation);
  // The same for a path of the machine, absolute or relative to the working directory.
  static absl::StatusOr<std::unique_ptr<EventFile>> OpenPath(const std::string& path, const StoreId& incarnation);

  absl::Status Deliver(const txn::ConsumedEntry& entry) override;

 private:
  EventFile(std::unique_ptr<storage::WritableFile> file, int64_t size, const StoreId& incarnation)
      : incarnation_(incarnation), file_(std::move(file)), size_(size) {}

  const StoreId incarnation_;
  std::unique_ptr<storage::FileSystem> owned_fs_;  // before file_, which lives shorter
  std::unique_ptr<storage::WritableFile> file_;
  int64_t size_;  // whole lines
  absl::Status poison_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_EVENT_FILE_H_
