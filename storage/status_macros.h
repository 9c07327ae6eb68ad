// Propagates absl::Status without writing the same three lines at each call.
//
//   REPOTXN_RETURN_IF_ERROR(file->Sync());
//   REPOTXN_ASSIGN_OR_RETURN(const int64_t size, file->Size());
#ifndef REPOTXN_STORAGE_STATUS_MACROS_H_
#define REPOTXN_STORAGE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#define REPOTXN_RETURN_IF_ERROR(expr)                                    \
  do {                                                                   \
    if (absl::Status repotxn_status = (expr); !repotxn_status.ok()) {    \
      return repotxn_status;                                             \
    }                                                                    \
  } while (false)

#define REPOTXN_CONCAT_INNER_(a, b) a##b
#define REPOTXN_CONCAT_(a, b) REPOTXN_CONCAT_INNER_(a, b)

#define REPOTXN_ASSIGN_OR_RETURN(lhs, expr) \
  REPOTXN_ASSIGN_OR_RETURN_IMPL_(REPOTXN_CONCAT_(repotxn_or_, __LINE__), lhs, expr)
#define REPOTXN_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                   \
  if (!tmp.ok()) return std::move(tmp).status();       \
  lhs = std::move(tmp).value()

namespace repotxn {

// Drops a status on purpose; `reason` says why that is right. The lint test counts the calls.
inline void IgnoreBecause(const absl::Status& /*status*/, absl::string_view /*reason*/) {}

}  // namespace repotxn

#endif  // REPOTXN_STORAGE_STATUS_MACROS_H_
