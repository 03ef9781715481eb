#pragma once
/// NumPy's RandomState, bit for bit: sample indices made with it must equal those that Megatron-LM
/// makes in Python.

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tessera {

/// The Mersenne Twister MT19937 and what NumPy's legacy interface draws from it. NumPy promises
/// that the numbers of RandomState never change.
///
/// Source: Matsumoto and Nishimura 1998, "Mersenne Twister"; how NumPy derives integers and reals
/// was compared with NumPy 1.24 and 2.x (tools/golden/token_files.py).
class NumpyRandom {
 public:
  /// RandomState(seed)
  explicit NumpyRandom(std::uint32_t seed);
  /// RandomState([key...]); the key is not empty.
  explicit NumpyRandom(std::span<const std::uint32_t> key);

  std::uint32_t next32();
  std::uint64_t next64();

  /// random(), rand(), random_sample(): at least 0 and below 1, 53 bits.
  double random();
  /// An integer from 0 to `most`, by masking and rejection. Draws nothing where most is 0.
  std::uint64_t interval(std::uint64_t most);
  /// randint(low, high): from low to high - 1, as 64-bit integers. Errors: Broken: low >= high.
  std::int64_t randint(std::int64_t low, std::int64_t high);
  /// geometric(p), 0 < p < 1: tries up to the first success.
  std::int64_t geometric(double p);
  /// choice(len(p), p=p): an index; `p` need not sum to 1 exactly.
  std::size_t choice(std::span<const double> p);
  /// choice(n), without probabilities.
  std::int64_t choice(std::int64_t n) { return randint(0, n); }

  /// shuffle(x) of a list or an array of one dim.
  template <typename T>
  void shuffle(std::span<T> x) {
    for (std::size_t i = x.size(); i-- > 1;) std::swap(x[i], x[interval(i)]);
  }
  /// permutation(n)
  std::vector<std::int64_t> permutation(std::int64_t n);

 private:
  static constexpr std::size_t kWords = 624, kShift = 397;

  void seed(std::uint32_t value);
  void refill();

  std::array<std::uint32_t, kWords> state_{};
  std::size_t at_ = kWords;  // the next word of state_; kWords: all were drawn
};

}  // namespace tessera
