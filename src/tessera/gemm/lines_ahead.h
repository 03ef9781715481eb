#pragma once
/// Matrices that are read or written some microseconds later, prefetched a few cache lines at a
/// time: while products are computed, memory has nothing to do, and the processor does not guess
/// rows that lie apart. A core can wait for only so many lines at a time: many prefetches at once
/// delay its own loads.

#include <cstdint>

namespace tessera::cpu {

/// One matrix.
class LinesAhead {
 public:
  LinesAhead() = default;
  /// `rows` of `bytes` each, `stride` bytes from one to the next.
  LinesAhead(const void* data, std::int64_t rows, std::int64_t bytes, std::int64_t stride)
      : row_(static_cast<const char*>(data)), rows_(rows), bytes_(bytes), stride_(stride) {}

  /// The same, all of it prefetched in `times` calls of fetch.
  LinesAhead over(std::int64_t times) const {
    LinesAhead out = *this;
    out.at_once_ = (rows_ * ((bytes_ + kLine - 1) / kLine) + times - 1) / times;
    return out;
  }

  bool done() const { return rows_ <= 0; }
  void fetch() {
    for (std::int64_t left = at_once_; left > 0 && rows_ > 0; --left) {
      __builtin_prefetch(row_ + at_, 0, kSecondCache);
      at_ += kLine;
      if (at_ >= bytes_) at_ = 0, row_ += stride_, --rows_;
    }
  }

 private:
  static constexpr int kSecondCache = 2;
  static constexpr std::int64_t kLine = 64;
  const char* row_ = nullptr;
  std::int64_t rows_ = 0, bytes_ = 0, stride_ = 0, at_ = 0, at_once_ = 1;
};

/// A few matrices, one after the other.
class ListAhead {
 public:
  void add(const LinesAhead& lines) {
    if (count_ < kMost && !lines.done()) list_[count_++] = lines;
  }
  void fetch() {
    if (next_ < count_ && list_[next_].done()) ++next_;
    if (next_ < count_) list_[next_].fetch();
  }

 private:
  static constexpr int kMost = 8;
  LinesAhead list_[kMost];
  int count_ = 0, next_ = 0;
};

}  // namespace tessera::cpu
