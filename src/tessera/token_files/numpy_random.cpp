#include "tessera/token_files/numpy_random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "tessera/base/error.h"

namespace tessera {

NumpyRandom::NumpyRandom(std::uint32_t value) { seed(value); }

NumpyRandom::NumpyRandom(std::span<const std::uint32_t> key) {
  check(!key.empty(), "an empty key of random numbers");
  seed(19650218);
  std::size_t i = 1, j = 0;
  const auto mixed = [&](std::uint32_t factor) {
    const std::uint32_t before = state_[i - 1];
    return state_[i] ^ ((before ^ (before >> 30)) * factor);
  };
  const auto next = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (std::size_t k = std::max(kWords, key.size()); k > 0; --k) {
    state_[i] = mixed(1664525) + key[j] + static_cast<std::uint32_t>(j);
    next();
    if (++j == key.size()) j = 0;
  }
  for (std::size_t k = kWords - 1; k > 0; --k) {
    state_[i] = mixed(1566083941) - static_cast<std::uint32_t>(i);
    next();
  }
  state_[0] = 0x80000000U;
}

void NumpyRandom::seed(std::uint32_t value) {
  for (std::size_t i = 0; i < kWords; ++i) {
    state_[i] = value;
    value = 1812433253U * (value ^ (value >> 30)) + static_cast<std::uint32_t>(i) + 1;
  }
  at_ = kWords;
}

void NumpyRandom::refill() {
  const auto twist = [](std::uint32_t high, std::uint32_t low, std::uint32_t far) {
    const std::uint32_t both = (high & 0x80000000U) | (low & 0x7fffffffU);
    return far ^ (both >> 1) ^ ((low & 1U) != 0 ? 0x9908b0dfU : 0U);
  };
  std::size_t i = 0;
  for (; i < kWords - kShift; ++i) state_[i] = twist(state_[i], state_[i + 1], state_[i + kShift]);
  for (; i < kWords - 1; ++i)
    state_[i] = twist(state_[i], state_[i + 1], state_[i + kShift - kWords]);
  state_[i] = twist(state_[i], state_[0], state_[kShift - 1]);
  at_ = 0;
}

std::uint32_t NumpyRandom::next32() {
  if (at_ == kWords) refill();
  std::uint32_t y = state_[at_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

std::uint64_t NumpyRandom::next64() {
  const std::uint64_t high = next32();
  return high << 32 | next32();
}

double NumpyRandom::random() {
  const std::uint32_t a = next32() >> 5, b = next32() >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

std::uint64_t NumpyRandom::interval(std::uint64_t most) {
  if (most == 0) return 0;
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(most);
  const bool narrow = most <= 0xffffffffU;
  for (;;) {
    const std::uint64_t value = (narrow ? next32() : next64()) & mask;
    if (value <= most) return value;
  }
}

std::int64_t NumpyRandom::randint(std::int64_t low, std::int64_t high) {
  check(low < high, "a random integer from ", low, " to below ", high);
  const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) - 1;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + interval(range));
}

std::int64_t NumpyRandom::geometric(double p) {
  check(p > 0 && p < 1, "a geometric distribution with p ", p);
  if (p < 0.333333333333333333333333)
    return static_cast<std::int64_t>(std::ceil(std::log1p(-random()) / std::log(1 - p)));
  const double u = random(), q = 1 - p;
  double sum = p, product = p;
  std::int64_t tries = 1;
  while (u > sum) {
    product *= q;
    sum += product;
    ++tries;
  }
  return tries;
}

std::size_t NumpyRandom::choice(std::span<const double> p) {
  check(!p.empty(), "a choice among nothing");
  std::vector<double> sums(p.size());
  std::partial_sum(p.begin(), p.end(), sums.begin());
  const double all = sums.back();
  for (double& sum : sums) sum /= all;
  const auto above = std::upper_bound(sums.begin(), sums.end(), random());
  return static_cast<std::size_t>(above - sums.begin());
}

std::vector<std::int64_t> NumpyRandom::permutation(std::int64_t n) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), std::int64_t{0});
  shuffle(std::span(out));
  return out;
}

}  // namespace tessera
