// The JSON interface for people who run repositories.
//
//   POST /api/repositories {"path", "format"}      201; 409 when the path is taken. "format" is sha1
//                                                  (default) or sha256
//   GET  /api/repositories?prefix=&after=&limit=   sorted by path; "next" is the `after` of the next
//                                                  page, absent on the last
//   GET  /api/repositories/<path>
//   GET  /api/transactions/<id>                    outcome: committed, not committed, unknown, pending
//
// Errors are {"error": {"code", "message", "detail"}}: code is the lower-case name of the status
// code, message a constant sentence, detail an object of strings. Asking for a transaction that is
// neither known nor alive fences its id, as Store::OutcomeOf() says.
//
// Routes below /api/ win over repositories of such a path, so none can be made there.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_REST_H_
#define REPOTXN_DAEMON_REST_H_

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/http_message.h"
#include "txn/store.h"

namespace repotxn::daemon {

class RestApi {
 public:
  // `store` must outlive it.
  explicit RestApi(txn::Store* store) : store_(store) {}

  // Answers any request below /api/. The caller has checked the right to do it.
  void Handle(const HttpRequest& request, const BodyReader& body, ResponseWriter& out);

 private:
  void Create(const BodyReader& body, ResponseWriter& out);
  void List(const HttpRequest& request, ResponseWriter& out);
  void Describe(absl::string_view path, ResponseWriter& out);
  void Outcome(absl::string_view id, ResponseWriter& out);

  txn::Store* const store_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_REST_H_
