// Pushes that stand ready as bytes: commands and pack of one small commit, as a client sends them
// to receive-pack.
//
// Each makes a branch of its own (old value zero) with a commit of one new file on top of a common
// first commit; the pack holds exactly its commit, tree and blob. They are put together here, not
// by Git, because thousands are needed and their making must not be in anybody's time; the run ends
// with `git fsck` over what both sides made of them.
#ifndef REPOTXN_BENCH_PREPARED_PUSH_H_
#define REPOTXN_BENCH_PREPARED_PUSH_H_

#include <cstdint>
#include <string>

#include "storage/object_id.h"

namespace repotxn::bench {

struct PreparedPush {
  std::string ref;
  ObjectId commit;
  std::string body;    // of the POST, and the input of `git receive-pack --stateless-rpc`
  size_t pack_at = 0;  // where in it the pack begins

  std::string Pack() const { return body.substr(pack_at); }
};

// The commit below all others, pushed first, as refs/heads/main.
PreparedPush FirstPush();
// The `number`-th push; the same number gives the same bytes. `parent`: the commit of FirstPush().
PreparedPush PushNumber(int64_t number, const ObjectId& parent);

// Whether an answer of receive-pack says that the pack and this ref were taken.
bool IsAccepted(const std::string& answer, const PreparedPush& push);

}  // namespace repotxn::bench

#endif  // REPOTXN_BENCH_PREPARED_PUSH_H_
