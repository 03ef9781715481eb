#pragma once
/// The merges of byte-pair encoding, and how they are made in a row of tokens.

#include <cstdint>
#include <vector>

#include "tessera/tokenizers/merge_scratch.h"

namespace tessera {

/// Which pairs of tokens become one, and which pair first. A plain value.
class MergeTable {
 public:
  struct Merge {
    std::int32_t rank = 0, product = 0;
  };
  /// Room for so many merges, without growing.
  void reserve(std::size_t merges);
  /// The pair becomes `product`; of two pairs in a row of tokens the one with the lower rank is
  /// merged first. A pair that is there is replaced.
  void add(std::int32_t left, std::int32_t right, Merge merge);

  /// nullptr: the pair is not merged.
  const Merge* find(std::int32_t left, std::int32_t right) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place(key(left, right))];
    return slot.merge.rank == kFree ? nullptr : &slot.merge;
  }

  /// Merges the pair of the lowest rank, of several the leftmost, until no pair is left. Time: of
  /// the order of n log n for n tokens.
  void apply(std::vector<std::int32_t>& ids, std::size_t begin, MergeScratch& scratch) const;

 private:
  static constexpr std::int32_t kFree = -1;
  struct Slot {
    std::uint64_t key = 0;
    Merge merge{kFree, 0};
  };
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t place(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].merge.rank != kFree && slots_[at].key != key)
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void resize(std::size_t slots);
  void apply_short(std::vector<std::int32_t>& ids, std::size_t begin) const;
  void apply_long(std::vector<std::int32_t>& ids, std::size_t begin, MergeScratch& scratch) const;

  std::vector<Slot> slots_;  // a power of two, at most half of it used
  std::size_t used_ = 0;
};

}  // namespace tessera
