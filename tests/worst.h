#pragma once
/// Differences that tests look for the largest of.

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {

/// The larger one; infinity where `found` is NaN, which std::max passes over.
inline double worse_of(double worst, double found) {
  return std::isnan(found) ? std::numeric_limits<double>::infinity() : std::max(worst, found);
}

}  // namespace tessera
