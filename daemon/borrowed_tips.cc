#include "daemon/borrowed_tips.h"

#include "absl/strings/string_view.h"
#include "daemon/push_judge.h"
#include "daemon/push_policy.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

// Every repository on the chain once, near ones first. Chains are short (txn::Transaction::LinkAlternate).
absl::StatusOr<std::vector<RepositoryId>> Chain(txn::Transaction& transaction,
                                                const RepositoryId& id) {
  std::vector<RepositoryId> chain = {id};
  absl::flat_hash_set<RepositoryId> seen = {id};
  for (size_t i = 0; i < chain.size(); ++i) {
    const RepositoryId member = chain[i];
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> pools, transaction.Alternates(member));
    for (const RepositoryId& pool : pools) {
      if (seen.insert(pool).second) chain.push_back(pool);
    }
  }
  chain.erase(chain.begin());
  return chain;
}

}  // namespace

absl::StatusOr<std::vector<ObjectId>> BorrowedTips(txn::Transaction& transaction,
                                                   const RepositoryId& id,
                                                   absl::flat_hash_set<ObjectId> known,
                                                   size_t tips_max) {
  std::vector<ObjectId> tips;
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> chain, Chain(transaction, id));
  for (const RepositoryId& pool : chain) {
    REPOTXN_ASSIGN_OR_RETURN(const PushPolicy policy, ReadPushPolicy(transaction, pool));
    REPOTXN_ASSIGN_OR_RETURN(const auto refs, transaction.ListRefs(pool, ""));
    for (const bool wants_branches : {true, false}) {
      for (const auto& [name, value] : refs) {
        if (name.IsBranch() != wants_branches || !value.is_object()) continue;
        if (policy.IsHidden(name.text())) continue;
        if (tips.size() == tips_max) return tips;
        if (known.insert(value.oid()).second) tips.push_back(value.oid());
      }
    }
  }
  return tips;
}

}  // namespace repotxn::daemon
