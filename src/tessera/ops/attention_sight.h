#pragma once
/// Which keys a query of attention sees by its position, beside what a mask says.

#include <cstdint>

#include "tessera/ir/op_def.h"

namespace tessera {

/// A query at position i sees the keys at positions i + first ... i + last.
struct Sight {
  static constexpr std::int64_t kFar = std::int64_t{1} << 40;  // beyond all positions
  std::int64_t first = -kFar, last = kFar;

  bool sees(std::int64_t ahead) const { return first <= ahead && ahead <= last; }
  bool looks_back_far() const { return first == -kFar; }
  bool looks_ahead_far() const { return last == kFar; }
  /// How many keys all queries see together, of `t` keys and `s` queries from position 0 on. Fewer
  /// queries than keys are a rank's share of as many: the mean of all ranks.
  double pairs(std::int64_t s, std::int64_t t) const;
};

/// Of attention and its gradient.
Sight sight_of(const OpCall& call);

}  // namespace tessera
