// The administration over HTTP: /api/... is what stands behind it in admin/admin_api.h.
//
// The body is JSON of at most admin::kBodyBytesMax. `Idempotency-Key` is the request id of a write:
// the same call with the same key may be sent again and is done once. The key is kept as long as
// outcomes are.
//
// Routes below /api/ win over repositories of such a path, so none can be made there.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_REST_H_
#define REPOTXN_DAEMON_REST_H_

#include "absl/strings/string_view.h"
#include "admin/admin_api.h"
#include "daemon/http_message.h"
#include "txn/store.h"

namespace repotxn::daemon {

inline constexpr absl::string_view kRestPrefix = "/api/";

class RestApi {
 public:
  // `store` must outlive it.
  explicit RestApi(txn::Store* store) : api_(store) {}

  // Answers any request below /api/. The caller has checked the right to do it; `actor` is who, for
  // the log, and may be empty.
  void Handle(absl::string_view actor, const HttpRequest& request, const BodyReader& body,
              ResponseWriter& out);
  // Whether the right to write is needed.
  static bool NeedsWrite(const HttpRequest& request);

 private:
  const admin::AdminApi api_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_REST_H_
