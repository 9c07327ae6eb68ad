// Ref names: the rule against a second implementation that is a table and a state machine over
// bytes. They must agree on every input, and a fault's offset must lie inside the name.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "refs/ref_name.h"

namespace {

enum ByteClass : uint8_t { kPlain, kSlash, kDot, kAt, kBrace, kForbidden };

constexpr std::array<uint8_t, 256> MakeTable() {
  std::array<uint8_t, 256> table{};
  for (size_t i = 0; i < 0x20; ++i) table[i] = kForbidden;
  for (const char byte : {' ', '~', '^', ':', '?', '*', '[', '\\', '\x7f'}) {
    table[static_cast<uint8_t>(byte)] = kForbidden;
  }
  table['/'] = kSlash;
  table['.'] = kDot;
  table['@'] = kAt;
  table['{'] = kBrace;
  return table;
}
constexpr std::array<uint8_t, 256> kClasses = MakeTable();

// One pass that remembers only the class of the byte before and the component's size and tail.
bool IsNameByTable(const std::string& name) {
  if (name == "HEAD") return true;
  if (name == "refs/heads" || name == "refs/tags") return false;
  if (name.size() > 1024 || name.compare(0, 5, "refs/") != 0) return false;
  uint8_t before = kSlash;
  size_t component_bytes = 0;
  std::string tail;  // the last five bytes of the component
  for (size_t i = 5; i <= name.size(); ++i) {
    const bool is_end = i == name.size();
    const uint8_t current = is_end ? uint8_t{kSlash} : kClasses[static_cast<uint8_t>(name[i])];
    if (current == kForbidden) return false;
    if (current == kSlash) {
      if (component_bytes == 0 || component_bytes > 255 || tail == ".lock") return false;
      if (is_end && before == kDot) return false;
      component_bytes = 0;
      tail.clear();
    } else {
      if (current == kDot && (before == kDot || before == kSlash)) return false;
      if (current == kBrace && before == kAt) return false;
      ++component_bytes;
      tail.push_back(name[i]);
      if (tail.size() > 5) tail.erase(0, 1);
    }
    before = current;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string name(reinterpret_cast<const char*>(data), size);
  const auto fault = repotxn::refs::FindRefNameFault(name);
  if (fault.has_value() == IsNameByTable(name)) std::abort();
  if (fault && fault->offset > name.size()) std::abort();
  const auto parsed = repotxn::refs::RefName::Parse(name);
  if (parsed.ok() == fault.has_value()) std::abort();
  if (parsed.ok()) {
    if (parsed->text() != name) std::abort();
    for (const auto parent : parsed->ParentNames()) {
      if (!parsed->IsBelow(parent) || repotxn::refs::FindRefNameFault(parent)) std::abort();
    }
  }
  return 0;
}
