#pragma once
/// How attention over two sets of keys is that over all of them.

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {

/// Of a row: what its results over the one set of keys and over the other are multiplied by.
template <typename T>
struct MergedRow {
  T first, second, logsumexp;
};

/// From the logsumexp over either; -infinity where the row sees none of its keys.
template <typename T>
MergedRow<T> merged_row(T first, T second) {
  const T top = std::max(first, second);
  if (top == -std::numeric_limits<T>::infinity()) return {0, 0, top};
  const T sum = top + std::log1p(std::exp(std::min(first, second) - top));
  return {std::exp(first - sum), std::exp(second - sum), sum};
}

}  // namespace tessera
