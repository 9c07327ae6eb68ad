#include "locks/lsn_table.h"

#include "storage/check.h"

namespace repotxn::locks {
namespace {

constexpr size_t kPageSlots = 256;
// A page splits when it holds more; probes stay short up to here.
constexpr size_t kPageSlotsMax = 208;
// Two buddies join when both hold at most this many, far enough from a new split.
constexpr size_t kJoinSlotsMax = 32;
constexpr int kValueBits = 48;

uint64_t TagOf(Domain domain, const PrefixHash& hash) {
  // An odd factor maps the domains to different patterns of 16 bits.
  const uint64_t mix = (static_cast<uint64_t>(domain) * 0x9E37u) & 0xFFFFu;
  return ((hash.high >> kValueBits) ^ mix) << kValueBits;
}

uint64_t TagOf(uint64_t tagged) { return tagged & ~LsnTable::kValueMax; }
uint64_t ValueOf(uint64_t tagged) { return tagged & LsnTable::kValueMax; }

}  // namespace

struct LsnTable::Page {
  std::array<Slot, kPageSlots> slots;
  size_t count = 0;
  int depth = 0;
};

LsnTable::LsnTable() = default;

LsnTable::~LsnTable() { Clear(); }

void LsnTable::Clear() {
  Page* previous = nullptr;
  // The pointers to one page stand side by side.
  for (Page* page : directory_) {
    if (page != previous) delete previous;
    previous = page;
  }
  delete previous;
  std::vector<Page*>().swap(directory_);
  depth_ = 0;
  page_count_ = 0;
}

LsnTable::Slot* LsnTable::Find(Domain domain, const PrefixHash& hash) const {
  if (directory_.empty()) return nullptr;
  Page* page = directory_[DirectoryIndex(hash.low)];
  const uint64_t tag = TagOf(domain, hash);
  for (size_t i = hash.low % kPageSlots;; i = (i + 1) % kPageSlots) {
    Slot& slot = page->slots[i];
    if (slot.tagged == 0) return nullptr;
    if (slot.low == hash.low && TagOf(slot.tagged) == tag) return &slot;
  }
}

uint64_t LsnTable::Get(Domain domain, const PrefixHash& hash) const {
  const Slot* slot = Find(domain, hash);
  return slot == nullptr ? 0 : ValueOf(slot->tagged);
}

void LsnTable::Prefetch(const PrefixHash& hash) const {
  if (directory_.empty()) return;
  const Page* page = directory_[DirectoryIndex(hash.low)];
  __builtin_prefetch(&page->slots[hash.low % kPageSlots]);
}

void LsnTable::Set(Domain domain, const PrefixHash& hash, uint64_t value) {
  REPOTXN_DCHECK(value > 0 && value <= kValueMax);
  const uint64_t tagged = TagOf(domain, hash) | value;
  if (Slot* slot = Find(domain, hash); slot != nullptr) {
    slot->tagged = tagged;
    return;
  }
  InsertInto(PageForInsert(hash.low), Slot{hash.low, tagged});
  ++size_;
  ++counts_[static_cast<size_t>(domain)];
}

void LsnTable::InsertInto(Page* page, const Slot& slot) {
  REPOTXN_DCHECK(page->count < kPageSlots - 1);
  size_t i = slot.low % kPageSlots;
  while (page->slots[i].tagged != 0) i = (i + 1) % kPageSlots;
  page->slots[i] = slot;
  ++page->count;
}

LsnTable::Page* LsnTable::PageForInsert(uint64_t low) {
  if (directory_.empty()) {
    directory_.push_back(new Page);
    page_count_ = 1;
  }
  Page* page = directory_[DirectoryIndex(low)];
  while (page->count >= kPageSlotsMax) {
    Split(page, low);
    page = directory_[DirectoryIndex(low)];
  }
  return page;
}

void LsnTable::Split(Page* page, uint64_t low) {
  if (page->depth == depth_) {
    REPOTXN_PROBE("locks.directory_doubles");
    std::vector<Page*> doubled;
    doubled.reserve(directory_.size() * 2);
    for (Page* each : directory_) doubled.insert(doubled.end(), 2, each);
    directory_.swap(doubled);
    ++depth_;
  }
  auto upper = std::make_unique<Page>();
  Page before = *page;
  *page = Page{};
  page->depth = upper->depth = before.depth + 1;
  const int bit = 64 - page->depth;
  for (const Slot& slot : before.slots) {
    if (slot.tagged == 0) continue;
    InsertInto(((slot.low >> bit) & 1) != 0 ? upper.get() : page, slot);
  }
  const size_t width = size_t{1} << (depth_ - page->depth);
  const size_t first = (DirectoryIndex(low) / (2 * width)) * (2 * width);
  for (size_t i = 0; i < width; ++i) directory_[first + width + i] = upper.get();
  upper.release();
  ++page_count_;
}

void LsnTable::Erase(Domain domain, const PrefixHash& hash) {
  if (Slot* slot = Find(domain, hash); slot != nullptr) EraseSlot(domain, hash, slot);
}

bool LsnTable::EraseIfIs(Domain domain, const PrefixHash& hash, uint64_t value) {
  Slot* slot = Find(domain, hash);
  if (slot == nullptr || ValueOf(slot->tagged) != value) return false;
  EraseSlot(domain, hash, slot);
  return true;
}

void LsnTable::Add(Domain domain, const PrefixHash& hash, int64_t delta) {
  const int64_t count = static_cast<int64_t>(Get(domain, hash)) + delta;
  if (REPOTXN_NEVER(count < 0) || count == 0) return Erase(domain, hash);
  Set(domain, hash, static_cast<uint64_t>(count));
}

void LsnTable::EraseSlot(Domain domain, const PrefixHash& hash, Slot* slot) {
  Page* page = directory_[DirectoryIndex(hash.low)];
  size_t hole = static_cast<size_t>(slot - page->slots.data());
  // Moves later slots of the run into the hole, unless that would put one before its own place.
  for (size_t i = (hole + 1) % kPageSlots; page->slots[i].tagged != 0; i = (i + 1) % kPageSlots) {
    const size_t home = page->slots[i].low % kPageSlots;
    const size_t from_home = (i + kPageSlots - home) % kPageSlots;
    const size_t from_hole = (i + kPageSlots - hole) % kPageSlots;
    if (from_home < from_hole) continue;
    page->slots[hole] = page->slots[i];
    hole = i;
  }
  page->slots[hole] = Slot{};
  --page->count;
  --size_;
  --counts_[static_cast<size_t>(domain)];
  if (size_ == 0) return Clear();
  if (page->count <= kJoinSlotsMax) JoinBuddies(hash.low);
}

void LsnTable::JoinBuddies(uint64_t low) {
  for (;;) {
    Page* page = directory_[DirectoryIndex(low)];
    if (page->depth == 0 || page->count > kJoinSlotsMax) return;
    const size_t width = size_t{1} << (depth_ - page->depth);
    const size_t first = (DirectoryIndex(low) / (2 * width)) * (2 * width);
    Page* lower = directory_[first];
    Page* upper = directory_[first + width];
    if (lower->depth != upper->depth || lower->count + upper->count > 2 * kJoinSlotsMax) return;
    for (const Slot& slot : upper->slots) {
      if (slot.tagged != 0) InsertInto(lower, slot);
    }
    --lower->depth;
    for (size_t i = 0; i < width; ++i) directory_[first + width + i] = lower;
    delete upper;
    --page_count_;
  }
}

size_t LsnTable::bytes() const {
  return page_count_ * sizeof(Page) + directory_.capacity() * sizeof(Page*);
}

}  // namespace repotxn::locks
