#pragma once
/// A matrix that is read some microseconds later, asked for a few lines at a time: while products
/// are computed, memory has nothing to do. A core waits for some two dozen lines at once, and what
/// it reads meanwhile has to wait for one of them to arrive, so many at a time would hold it up.

#include <cstdint>

namespace tessera::cpu {

class LinesAhead {
 public:
  LinesAhead() = default;
  /// `rows` of `bytes` each, `stride` bytes from one to the next.
  LinesAhead(const void* data, std::int64_t rows, std::int64_t bytes, std::int64_t stride)
      : row_(static_cast<const char*>(data)), rows_(rows), bytes_(bytes), stride_(stride) {}

  /// The same, all of it asked for in `times` calls of fetch.
  LinesAhead over(std::int64_t times) const {
    LinesAhead out = *this;
    out.at_once_ = (rows_ * ((bytes_ + kLine - 1) / kLine) + times - 1) / times;
    return out;
  }

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

}  // namespace tessera::cpu
