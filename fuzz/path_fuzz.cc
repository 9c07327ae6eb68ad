// StorePath::Parse against a second implementation that is as plain as possible, and the algebra of
// what it accepts.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/store_path.h"

namespace {

using repotxn::storage::StorePath;

void Require(bool condition) {
  if (!condition) std::abort();
}

std::vector<std::string> Split(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

bool IsGoodPart(const std::string& part) {
  if (part.empty() || part.size() > 255 || part == "." || part == "..") return false;
  for (const char c : part) {
    if (c == '\0') return false;
  }
  return true;
}

bool IsGoodPath(const std::string& path) {
  if (path.empty()) return true;
  if (path.size() > 4095) return false;
  for (const std::string& part : Split(path)) {
    if (!IsGoodPart(part)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parsed = StorePath::Parse(text);
  Require(parsed.ok() == IsGoodPath(text));
  if (!parsed.ok()) {
    Require(absl::IsInvalidArgument(parsed.status()));
    return 0;
  }
  Require(parsed->text() == text);
  if (parsed->IsRoot()) return 0;
  // Parent and name put together give the path again; every ancestor holds it.
  const StorePath parent = parsed->Parent();
  const auto joined = parent.Child(parsed->Name());
  Require(joined.ok() && *joined == *parsed);
  size_t depth = 0;
  for (StorePath path = *parsed; !path.IsRoot(); path = path.Parent()) {
    Require(parsed->IsWithin(path));
    Require(path == *parsed || !path.IsWithin(*parsed));
    ++depth;
  }
  Require(depth == Split(text).size());
  return 0;
}
