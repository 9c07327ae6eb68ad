// packed-refs: what is read, written again and read again is the same, and writing it a second time
// is a fixpoint. Both object formats.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "refs/packed_refs.h"

namespace {

using repotxn::ObjectFormat;
using repotxn::refs::EditPackedRefs;
using repotxn::refs::PackedRefs;

std::string Bytes(absl::string_view view) { return std::string(view.data(), view.size()); }

std::vector<repotxn::wal::PackedRef> RefsOf(const PackedRefs& packed) {
  std::vector<repotxn::wal::PackedRef> refs;
  for (size_t i = 0; i < packed.size(); ++i) {
    const PackedRefs::Entry entry = packed.At(i);
    refs.push_back({Bytes(entry.name), Bytes(entry.oid.bytes()), Bytes(entry.peeled.bytes())});
    if (i > 0 && !(refs[i - 1].name < refs[i].name)) std::abort();
    const auto found = packed.Find(entry.name);
    if (!found || found->oid != entry.oid || found->peeled != entry.peeled) std::abort();
  }
  return refs;
}

void RunOne(const std::string& content, ObjectFormat format) {
  const auto first = PackedRefs::Parse(content, format);
  if (!first.ok()) return;
  const std::vector<repotxn::wal::PackedRef> refs = RefsOf(*first);
  // Setting every line to what it is changes nothing.
  const auto same = EditPackedRefs(*first, refs, {});
  if (!same.ok() || same->changed) std::abort();

  const auto written = EditPackedRefs(PackedRefs(format), refs, {});
  if (!written.ok() || written->changed != !refs.empty()) std::abort();
  const auto second = PackedRefs::Parse(written->content, format);
  if (!second.ok() || RefsOf(*second) != refs) std::abort();
  const auto again = EditPackedRefs(PackedRefs(format), RefsOf(*second), {});
  if (!again.ok() || again->content != written->content) std::abort();

  // Without its middle ref, the rest is the rest.
  if (refs.empty()) return;
  std::vector<repotxn::wal::PackedRef> rest = refs;
  const std::vector<std::string> removed = {refs[refs.size() / 2].name};
  rest.erase(rest.begin() + static_cast<long>(refs.size() / 2));
  const auto less = EditPackedRefs(*first, {}, removed);
  if (!less.ok() || !less->changed) std::abort();
  const auto third = PackedRefs::Parse(less->content, format);
  if (!third.ok() || RefsOf(*third) != rest) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string content(reinterpret_cast<const char*>(data), size);
  RunOne(content, ObjectFormat::kSha1);
  RunOne(content, ObjectFormat::kSha256);
  return 0;
}
