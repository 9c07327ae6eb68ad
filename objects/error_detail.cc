#include "objects/error_detail.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace repotxn::objects {
namespace {

constexpr absl::string_view kPayload = "repotxn/objects.detail";

}  // namespace

absl::Status WithDetail(absl::Status status, absl::string_view key, absl::string_view value) {
  if (status.ok()) return status;
  std::string lines;
  if (const auto earlier = status.GetPayload(kPayload)) lines = std::string(*earlier);
  absl::StrAppend(&lines, key, "=", absl::CEscape(value), "\n");
  status.SetPayload(kPayload, absl::Cord(std::move(lines)));
  return status;
}

std::string ErrorDetail(const absl::Status& status, absl::string_view key) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return "";
  const std::string lines(*payload);
  const std::string prefix = absl::StrCat(key, "=");
  std::string value;
  // The last one wins: the layer nearest to the caller knows best.
  for (absl::string_view line : absl::StrSplit(lines, '\n')) {
    if (absl::ConsumePrefix(&line, prefix)) value = std::string(line.data(), line.size());
  }
  return value;
}

absl::Status Damaged(absl::string_view what, absl::string_view file, int64_t offset) {
  return WithDetail(WithDetail(absl::DataLossError(what), "file", file), "offset",
                    absl::StrCat(offset));
}

}  // namespace repotxn::objects
