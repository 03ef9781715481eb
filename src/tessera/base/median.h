#pragma once
/// The middle of some numbers.

#include <algorithm>
#include <vector>

namespace tessera {

/// Of an even count, the mean of the two in the middle. `numbers` is not empty.
inline double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const std::size_t n = numbers.size();
  return n % 2 == 1 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

}  // namespace tessera
