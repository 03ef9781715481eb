#include "tessera/tokenizers/token_table.h"

#include <algorithm>

#include "tessera/base/hash.h"

namespace tessera::tokenizer {

namespace {

/// A file of a few bytes may name the id two billion: beyond these, ids are searched for.
constexpr std::int64_t kDense = 1 << 16, kDensePerToken = 8;

}  // namespace

std::string_view TokenTable::text(std::size_t i) const {
  const Entry& entry = entries_[i];
  return std::string_view(bytes_).substr(entry.begin, entry.size);
}

std::size_t TokenTable::slot_of(std::string_view token, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) return slot;
    const std::size_t i = slots_[slot] - 1;
    if (entries_[i].hash == hash && text(i) == token) return slot;
  }
}

std::int32_t TokenTable::find(std::string_view token) const {
  if (slots_.empty()) return kNoId;
  const std::uint32_t found = slots_[slot_of(token, hash64(token))];
  return found == 0 ? kNoId : entries_[found - 1].id;
}

void TokenTable::grow() {
  std::vector<std::uint32_t> slots(std::max<std::size_t>(64, slots_.size() * 2));
  slots_.swap(slots);
  for (std::size_t i = 0; i < entries_.size(); ++i)
    slots_[slot_of(text(i), entries_[i].hash)] = static_cast<std::uint32_t>(i + 1);
}

void TokenTable::add(std::string_view token, std::int32_t id) {
  if ((entries_.size() + 1) * 2 > slots_.size()) grow();
  const std::uint64_t hash = hash64(token);
  const std::size_t slot = slot_of(token, hash);
  end_ = std::max(end_, id + 1);
  if (slots_[slot] == 0) {
    entries_.push_back({hash, bytes_.size(), static_cast<std::uint32_t>(token.size()), id});
    bytes_ += token;
    slots_[slot] = static_cast<std::uint32_t>(entries_.size());
  } else {
    entries_[slots_[slot] - 1].id = id;
  }
  const auto place = static_cast<std::size_t>(id);
  if (id >= std::max<std::int64_t>(kDense, kDensePerToken * std::ssize(entries_))) return;
  if (by_id_.size() <= place) by_id_.resize(std::max(place + 1, by_id_.size() * 2));
  by_id_[place] = static_cast<std::int32_t>(slots_[slot]);
}

bool TokenTable::token(std::int32_t id, std::string_view& out) const {
  if (id < 0) return false;
  const auto place = static_cast<std::size_t>(id);
  if (place < by_id_.size() && by_id_[place] > 0) {
    const auto i = static_cast<std::size_t>(by_id_[place] - 1);
    if (entries_[i].id == id) {
      out = text(i);
      return true;
    }
  }
  const auto last =
      std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& e) { return e.id == id; });
  if (last == entries_.rend()) return false;
  out = text(static_cast<std::size_t>(entries_.rend() - last - 1));
  return true;
}

}  // namespace tessera::tokenizer
