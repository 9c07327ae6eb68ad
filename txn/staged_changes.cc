#include "txn/staged_changes.h"

#include "txn/object_looks.h"

namespace repotxn::txn {

StagedChanges::StagedChanges() = default;
StagedChanges::~StagedChanges() = default;

}  // namespace repotxn::txn
