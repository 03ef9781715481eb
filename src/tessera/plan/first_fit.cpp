#include "tessera/plan/first_fit.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "tessera/base/round_up.h"
#include "tessera/base/size.h"

namespace tessera {

FirstFit::FirstFit(const LayoutProblem& problem) : problem_(problem), least_bytes_(kMaxSize) {
  std::int64_t grain = 0;
  for (const LayoutProblem::Buffer& of : problem.buffers) {
    if (of.fixed) continue;
    least_bytes_ = std::min(least_bytes_, of.bytes);
    grain = std::gcd(grain, of.alignment);
  }
  grain_ = std::max<std::int64_t>(grain, 1);
}

bool FirstFit::place(const std::vector<int>& rank, std::int64_t max_steps) {
  steps_ = 0;
  offsets_.assign(rank.size(), -1);
  top_.assign(problem_.sections(), 0);
  full_.assign(problem_.sections(), 0);
  std::vector<int> order(rank.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const auto key = [&](int of) {
      const LayoutProblem::Buffer& buffer = problem_.buffers[at(of)];
      return std::tuple(!buffer.fixed, buffer.fixed ? buffer.low : 0, rank[at(of)]);
    };
    return key(a) < key(b);
  });
  for (const int b : order) {
    const LayoutProblem::Buffer& of = problem_.buffers[at(b)];
    if (of.fixed) {  // none begins above it yet
      if (top_over(of) > of.low) return false;
      put(b, of.low);
    } else {
      put(b, steps_ < max_steps ? lowest_free(b) : round_up(top_over(of), of.alignment));
    }
  }
  return true;
}

std::int64_t FirstFit::top_over(const LayoutProblem::Buffer& of) const {
  return *std::max_element(top_.begin() + of.begin, top_.begin() + of.end);
}

std::int64_t FirstFit::lowest_free(int b) {
  const LayoutProblem::Buffer& of = problem_.buffers[at(b)];
  steps_ += of.end - of.begin;
  std::int64_t low = *std::max_element(full_.begin() + of.begin, full_.begin() + of.end);
  low = round_up(low, of.alignment);
  if (top_over(of) <= low) return low;
  taken_.clear();
  problem_.for_neighbours(b, [&](int other) {
    const std::int64_t begin = offsets_[at(other)], end = begin + problem_.buffers[at(other)].bytes;
    if (begin >= 0 && end > low) taken_.emplace_back(begin, end);
  });
  std::sort(taken_.begin(), taken_.end());
  const std::size_t count = taken_.size();
  steps_ += problem_.neighbours(b) + static_cast<std::int64_t>(count * std::bit_width(count));
  for (const auto& [begin, end] : taken_) {
    if (low + of.bytes <= begin) break;
    low = std::max(low, round_up(end, of.alignment));
  }
  return low;
}

void FirstFit::put(int b, std::int64_t low) {
  const LayoutProblem::Buffer& of = problem_.buffers[at(b)];
  const std::int64_t end = low + of.bytes;
  offsets_[at(b)] = low;
  for (std::size_t s = at(of.begin); s < at(of.end); ++s) {
    top_[s] = std::max(top_[s], end);
    if (low - full_[s] < least_bytes_) full_[s] = std::max(full_[s], round_up(end, grain_));
  }
}

}  // namespace tessera
