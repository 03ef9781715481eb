#pragma once
/// Counts the bytes that `new` hands out in this program.

#include <cstdint>

namespace tessera::fuzz {

/// While it lives, holding more than `bytes` beyond what was held before is a finding: it ends the
/// process at the request that would exceed it, so that a huge one is never tried.
class HeapBound {
 public:
  explicit HeapBound(std::int64_t bytes);
  ~HeapBound();
  HeapBound(const HeapBound&) = delete;
  HeapBound& operator=(const HeapBound&) = delete;
  /// The most that was held.
  std::int64_t peak() const;

 private:
  std::int64_t before_;
};

}  // namespace tessera::fuzz
