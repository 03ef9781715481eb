#pragma once
/// Tokens and their ids, both ways.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/piece.h"

namespace tessera::tokenizer {

/// A map of strings to ids that is asked much more often than it is filled.
class TokenTable {
 public:
  /// Of equal tokens the last one's id is kept.
  void add(std::string_view token, std::int32_t id);

  /// kNoId: there is none.
  std::int32_t find(std::string_view token) const;
  /// Which token has the id; of several the last added. Empty and false: none.
  bool token(std::int32_t id, std::string_view& out) const;

  /// Distinct tokens.
  std::size_t count() const { return entries_.size(); }
  /// One above the greatest id; 0: no token.
  std::int32_t end() const { return end_; }
  /// Token number `i` < count(), in the order in which they were added.
  std::string_view text(std::size_t i) const;
  std::int32_t id(std::size_t i) const { return entries_[i].id; }

 private:
  struct Entry {
    std::uint64_t hash = 0, begin = 0;
    std::uint32_t size = 0;
    std::int32_t id = 0;
  };
  std::size_t slot_of(std::string_view token, std::uint64_t hash) const;
  void grow();

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // entry + 1; 0: free. A power of two, at most half of it used
  std::vector<std::int32_t> by_id_;   // entry + 1 of small ids; others are searched
  std::int32_t end_ = 0;
};

}  // namespace tessera::tokenizer
