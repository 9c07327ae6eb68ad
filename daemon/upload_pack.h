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
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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
  // What became of a child.
  enum class ChildEnd : uint8_t {
    kAnswered,    // its output went to the client, as far as the client took it
    kNotOurRef,   // it refused a want; nothing was sent
    kFailed,      // it could not run, or ended without a word; nothing was sent
  };
  // Runs upload-pack in `snapshot`. `prefix` goes before its output. Refused wants are kept from the
  // client only when `holds_refusal`.
  ChildEnd RunChild(const txn::SnapshotDirectory& snapshot, bool is_advertisement,
                    const HttpRequest& request, const std::string& input,
                    absl::string_view prefix, bool holds_refusal, ResponseWriter& out);
  // Key of a repository's pins: its id, so that a new repository of the same path has none.
  absl::StatusOr<std::string> PinKey(const txn::RepositoryPath& path);

  txn::Store* const store_;
  const UploadPackOptions options_;
  PinnedSnapshots pins_;
};

// `Git-Protocol` as far as it may reach a child: `version=1` or `version=2`, else empty.
std::string AcceptedProtocol(absl::string_view header);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_UPLOAD_PACK_H_
