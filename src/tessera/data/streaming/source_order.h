#pragma once
/// Which source of a mixture a sample comes from.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/token_files/blend.h"

namespace tessera {

/// The samples of blend_by_weight (token_files/blend.h), of however many: none is kept.
class SourceOrder {
 public:
  explicit SourceOrder(const std::vector<double>& weights)
      : weights_(normalised(weights)), taken_(weights.size()) {}

  /// The source of a sample, and its number there. In order, one call takes a turn.
  std::pair<std::size_t, std::int64_t> at(std::int64_t number) {
    advance(number);
    const std::size_t next = next_source();
    return {next, taken_[next]};
  }
  /// How many of samples [0, count) each source has.
  std::vector<std::int64_t> taken(std::int64_t count) {
    advance(count);
    return taken_;
  }

 private:
  void advance(std::int64_t number) {
    check(number >= 0, "sample ", number);
    if (weights_.size() == 1) {
      at_ = taken_[0] = number;
      return;
    }
    if (number < at_) {
      at_ = 0;
      std::ranges::fill(taken_, 0);
    }
    for (; at_ < number; ++at_) ++taken_[next_source()];
  }
  std::size_t next_source() const {
    const double at = std::max(static_cast<double>(at_), 1.0);
    std::size_t next = 0;
    double most = weights_[0] * at - static_cast<double>(taken_[0]);
    for (std::size_t d = 1; d < weights_.size(); ++d) {
      const double behind = weights_[d] * at - static_cast<double>(taken_[d]);
      if (behind > most) most = behind, next = d;
    }
    return next;
  }

  std::vector<double> weights_;
  std::vector<std::int64_t> taken_;  // of samples [0, at_)
  std::int64_t at_ = 0;
};

}  // namespace tessera
