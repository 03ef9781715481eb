#pragma once
/// The ids of pieces that came before: most words of a text are among them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

/// A table of strings that empties itself when it is full. Of one thread at a time.
class WordCache {
 public:
  static constexpr std::size_t kLongest = 256;  // bytes of a piece that is kept

  /// Whether the piece was added; its ids then follow in `out`.
  bool append(std::string_view piece, std::uint64_t hash, Ids& out) const {
    const auto kept = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = kept & (slots_.size() - 1); slots_[at].count != kFree; at = next(at)) {
      const Slot& slot = slots_[at];
      if (slot.hash != kept || slot.size != piece.size() ||
          piece != std::string_view(bytes_.data() + slot.begin, slot.size))
        continue;
      const std::int32_t* const ids = ids_.data() + slot.ids;
      if (slot.count == 1) {
        out.push_back(*ids);
      } else {
        out.insert(out.end(), ids, ids + slot.count);
      }
      return true;
    }
    return false;
  }

  /// `piece` is not there yet, and has at most kLongest bytes.
  void add(std::string_view piece, std::uint64_t hash, std::span<const std::int32_t> ids) {
    if (ids.size() >= kFree) return;
    if (used_ * 2 >= slots_.size()) grow();
    if (used_ * 2 >= slots_.size() || ids_.size() > kMostIds) clear();
    put({static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(bytes_.size()),
         static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(piece.size()),
         static_cast<std::uint16_t>(ids.size())});
    bytes_ += piece;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++used_;
  }

 private:
  // Powers of two, of 8 apart.
  static constexpr std::size_t kFewSlots = 1 << 8, kMostSlots = 1 << 17, kMostIds = 1 << 21;
  static constexpr std::uint16_t kFree = 0xFFFF;
  struct Slot {
    std::uint32_t hash = 0, begin = 0, ids = 0;
    std::uint16_t size = 0, count = kFree;
  };
  std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }
  void put(const Slot& slot) {
    std::size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].count != kFree) at = next(at);
    slots_[at] = slot;
  }
  /// Short texts need no large table.
  void grow() {
    if (slots_.size() == kMostSlots) return;
    std::vector<Slot> before(8 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.count != kFree) put(slot);
    }
  }
  void clear() {
    slots_.assign(slots_.size(), {});
    bytes_.clear();
    ids_.clear();
    used_ = 0;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kFewSlots);
  std::string bytes_;
  Ids ids_;
  std::size_t used_ = 0;
};

}  // namespace tessera::tokenizer
