// Serves `git fetch` and `git clone`: stock `git upload-pack` in a read snapshot.
//
// Each request gets the newest state. What an advertisement or an ls-refs showed stays pinned for a
// while; a version-0 request whose want is no tip any more is served from the youngest pinned
// snapshot that has it, else refused as Git does.
//
// The request (wants and haves) is held in memory, bounded; the answer (the pack) is streamed. The
// child is killed when the client goes away or takes too long.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_UPLOAD_PACK_H_
#define REPOTXN_DAEMON_UPLOAD_PACK_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/http_message.h"
#include "daemon/pinned_snapshots.h"
#include "storage/clock.h"
#include "txn/repository_path.h"
#include "txn/store.h"

namespace repotxn::daemon {

struct UploadPackOptions {
  // How long what was shown stays readable, and how many snapshots at most.
  absl::Duration pin_duration = absl::Seconds(60);
  size_t pins_max = 256;
  // Bytes of one request after decompression.
  size_t request_bytes_max = 64 << 20;
};

class UploadPack {
 public:
  // `store` and `clock` must outlive it.
  UploadPack(txn::Store* store, storage::Clock* clock, const UploadPackOptions& options)
      : store_(store),
        options_(options),
        pins_(clock, options.pin_duration, options.pins_max) {}

  // Answers GET info/refs. 404 when the repository is absent.
  void Advertise(const txn::RepositoryPath& path, const HttpRequest& request, ResponseWriter& out);
  // Answers POST git-upload-pack.
  void Serve(const txn::RepositoryPath& path, const HttpRequest& request, const BodyReader& body,
             ResponseWriter& out);
  // Lets go of all pinned snapshots; before the store closes.
  void DropPins() { pins_.Clear(); }

 private:
  PinnedSnapshots::Snapshot SnapshotWithWants(const std::string& repository,
                                              absl::string_view request_body,
                                              PinnedSnapshots::Snapshot newest);
  void RunChild(const txn::SnapshotDirectory& snapshot, bool is_advertisement,
                const HttpRequest& request, absl::string_view input, ResponseWriter& out);

  txn::Store* const store_;
  const UploadPackOptions options_;
  PinnedSnapshots pins_;
};

// `Git-Protocol` as far as it may reach a child: `version=1` or `version=2`, else empty.
std::string AcceptedProtocol(absl::string_view header);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_UPLOAD_PACK_H_
