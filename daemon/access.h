// Who may read and write: tokens from a file.
//
// One token a line: `token [name] [ro|rw]`, separated by blanks; rw when absent. Empty lines and
// lines that begin with '#' are skipped. A client sends it as `Authorization: Bearer <token>` or as
// the password of HTTP Basic, whose user name is ignored.
//
// Without a token file everybody may do everything; the server then binds to loopback only.
//
// Tokens are compared in constant time, and are never logged.
// Thread-compatible; constant once made.
#ifndef REPOTXN_DAEMON_ACCESS_H_
#define REPOTXN_DAEMON_ACCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn::daemon {

enum class Right : uint8_t { kNone, kRead, kWrite };

struct Caller {
  Right right = Right::kNone;
  std::string name;  // of the token; empty without one
};

class AccessList {
 public:
  // Everybody may write.
  static AccessList Open();
  // kInvalidArgument with the number of the line: a token shorter than 16 bytes, a third word that
  // is not ro or rw, a fourth word, a token twice, or no token at all.
  static absl::StatusOr<AccessList> Parse(absl::string_view text);
  // Reads the file; kNotFound when it cannot be read.
  static absl::StatusOr<AccessList> Load(const std::string& file);

  // What the value of an Authorization header (empty: none) allows.
  Caller Judge(absl::string_view authorization) const;
  bool is_open() const { return is_open_; }

 private:
  struct Token {
    std::string token;
    std::string name;
    Right right;
  };
  bool is_open_ = false;
  std::vector<Token> tokens_;
};

// Whether both are equal, in a time that depends on the lengths only.
bool EqualInConstantTime(absl::string_view a, absl::string_view b);

// Whether `host` names this machine only: 127.0.0.0/8, ::1, localhost.
bool IsLoopback(absl::string_view host);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_ACCESS_H_
