#pragma once
/// A matrix that is read some microseconds later, asked for a few lines at a time: while products
/// are computed, memory has nothing to do.

#include <cstdint>

namespace tessera::cpu {

class LinesAhead {
 public:
  LinesAhead() = default;
  /// `rows` of `bytes` each, `stride` bytes from one to the next.
  LinesAhead(const void* data, std::int64_t rows, std::int64_t bytes, std::int64_t stride)
      : row_(static_cast<const char*>(data)), rows_(rows), bytes_(bytes), stride_(stride) {}

  /// How many to ask for each of `times` times, so that all have been asked for then.
  std::int64_t share(std::int64_t times) const {
    return (rows_ * ((bytes_ + kLine - 1) / kLine) + times - 1) / times;
  }

  void fetch(std::int64_t lines) {
    for (; lines > 0 && rows_ > 0; --lines) {
      __builtin_prefetch(row_ + at_, 0, kSecondCache);
      at_ += kLine;
      if (at_ >= bytes_) at_ = 0, row_ += stride_, --rows_;
    }
  }

 private:
  static constexpr int kSecondCache = 2;
  static constexpr std::int64_t kLine = 64;
  const char* row_ = nullptr;
  std::int64_t rows_ = 0, bytes_ = 0, stride_ = 0, at_ = 0;
};

}  // namespace tessera::cpu
