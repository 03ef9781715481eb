#include "tessera/tokenizers/merge_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

namespace tessera {

namespace {

constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kShortRow = 48;  // tokens: looking at all ranks is then faster than a heap

}  // namespace

void MergeTable::resize(std::size_t slots) {
  std::vector<Slot> old(slots);
  slots_.swap(old);
  for (const Slot& slot : old) {
    if (slot.merge.rank != kFree) slots_[place(slot.key)] = slot;
  }
}

void MergeTable::reserve(std::size_t merges) {
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(16, merges * 2 + 2));
  if (slots > slots_.size()) resize(slots);
}

void MergeTable::add(std::int32_t left, std::int32_t right, Merge merge) {
  if ((used_ + 1) * 2 > slots_.size()) resize(std::max<std::size_t>(16, slots_.size() * 2));
  Slot& slot = slots_[place(key(left, right))];
  if (slot.merge.rank == kFree) ++used_;
  slot = {key(left, right), merge};
}

void MergeTable::apply(std::vector<std::int32_t>& ids, std::size_t begin,
                       MergeScratch& scratch) const {
  if (ids.size() - begin < 2) return;
  if (ids.size() - begin <= kShortRow) {
    apply_short(ids, begin);
  } else {
    apply_long(ids, begin, scratch);
  }
}

void MergeTable::apply_short(std::vector<std::int32_t>& ids, std::size_t begin) const {
  std::int32_t* const row = ids.data() + begin;
  std::size_t size = ids.size() - begin;
  std::int32_t ranks[kShortRow];  // of the pair that begins there
  const auto rank_at = [&](std::size_t i) {
    const Merge* const merge = i + 1 < size ? find(row[i], row[i + 1]) : nullptr;
    return merge == nullptr ? kNoRank : merge->rank;
  };
  for (std::size_t i = 0; i < size; ++i) ranks[i] = rank_at(i);
  while (true) {
    const auto best = static_cast<std::size_t>(std::min_element(ranks, ranks + size) - ranks);
    if (ranks[best] == kNoRank) break;
    row[best] = find(row[best], row[best + 1])->product;
    std::copy(row + best + 2, row + size, row + best + 1);
    std::copy(ranks + best + 2, ranks + size, ranks + best + 1);
    --size;
    ranks[best] = rank_at(best);
    if (best > 0) ranks[best - 1] = rank_at(best - 1);
  }
  ids.resize(begin + size);
}

void MergeTable::apply_long(std::vector<std::int32_t>& ids, std::size_t begin,
                            MergeScratch& scratch) const {
  constexpr std::int32_t kGone = -1;
  const std::size_t size = ids.size() - begin;
  std::int32_t* const row = ids.data() + begin;  // a token stands where its first one stood
  std::vector<std::int32_t>&next = scratch.next, &before = scratch.before;
  std::vector<std::uint64_t>& heap = scratch.heap;
  next.resize(size), before.resize(size), heap.clear();
  const auto merge_at = [&](std::size_t i) -> const Merge* {
    const auto right = static_cast<std::size_t>(next[i]);
    return right >= size ? nullptr : find(row[i], row[right]);
  };
  const auto push = [&](std::size_t i) {
    if (const Merge* const merge = merge_at(i)) {
      heap.push_back(static_cast<std::uint64_t>(merge->rank) << 32 | i);
      std::ranges::push_heap(heap, std::greater<>());
    }
  };
  for (std::size_t i = 0; i < size; ++i) {
    next[i] = static_cast<std::int32_t>(i + 1);
    before[i] = static_cast<std::int32_t>(i) - 1;
  }
  for (std::size_t i = 0; i < size; ++i) push(i);
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, std::greater<>());
    const std::uint64_t top = heap.back();
    heap.pop_back();
    const auto at = static_cast<std::size_t>(top & 0xFFFF'FFFF);
    if (row[at] == kGone) continue;
    const Merge* const merge = merge_at(at);
    if (merge == nullptr || static_cast<std::uint64_t>(merge->rank) != top >> 32) continue;
    const auto right = static_cast<std::size_t>(next[at]);
    row[at] = merge->product;
    row[right] = kGone;
    next[at] = next[right];
    if (static_cast<std::size_t>(next[at]) < size)
      before[static_cast<std::size_t>(next[at])] = static_cast<std::int32_t>(at);
    if (before[at] >= 0) push(static_cast<std::size_t>(before[at]));
    push(at);
  }
  const auto end = std::remove(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(), kGone);
  ids.erase(end, ids.end());
}

}  // namespace tessera
