#pragma once
/// Work split over threads where each part has workspace of its own: like Pool::split, with the
/// part's number.

#include <algorithm>
#include <cstdint>

#include "tessera/device/cpu/pool.h"

namespace tessera::cpu {

/// How many parts [0, n) is cut into: at most one per thread, none smaller than `grain`.
inline int parts_of(std::int64_t n, std::int64_t grain, int threads) {
  return static_cast<int>(
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, threads));
}

/// Calls task(part, begin, end) for `parts` nearly equal ranges of [0, n). The cut depends on n and
/// parts alone.
template <typename Task>
void run_parts(Pool& pool, int parts, std::int64_t n, const Task& task) {
  const auto one = [&](int part) {
    const std::int64_t begin = n * part / parts, end = n * (part + 1) / parts;
    if (begin < end) task(part, begin, end);
  };
  if (parts == 1) return one(0);
  pool.run(parts, one);
}

}  // namespace tessera::cpu
