#pragma once
/// Random numbers of one sample, one after the other.

#include <cstdint>

#include "tessera/base/philox.h"

namespace tessera {

class Draws {
 public:
  Draws(std::uint64_t key, std::int64_t sample)
      : key_(key), sample_(static_cast<std::uint64_t>(sample)) {}
  /// In [0, n), n > 0.
  std::int64_t below(std::int64_t n) { return uniform_index(next(), n); }
  /// In [0, 1).
  float unit() { return unit_float(next()[2]); }

 private:
  PhiloxBlock next() { return philox(key_, count_++, sample_); }

  std::uint64_t key_, sample_, count_ = 0;
};

}  // namespace tessera
