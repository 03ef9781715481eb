#pragma once
/// Rows that are read or written some microseconds later, asked for a few at a time: while a
/// product is computed, memory has nothing to do, and the processor does not guess rows that lie
/// apart.

#include <cstdint>

namespace tessera::cpu {

class RowsAhead {
 public:
  /// `rows` of `bytes` each, `stride` bytes from one to the next.
  void add(const void* data, std::int64_t rows, std::int64_t bytes, std::int64_t stride) {
    if (count_ < kMost && rows > 0)
      list_[count_++] = {static_cast<const char*>(data), rows, bytes, stride};
  }

  /// Asks for the next few.
  void fetch() {
    for (int i = 0; i < kRowsAtOnce && next_ < count_; ++i) {
      Rows& rows = list_[next_];
      for (std::int64_t c = 0; c < rows.bytes; c += kLine)
        __builtin_prefetch(rows.data + c, 0, kSecondCache);
      rows.data += rows.stride;
      if (--rows.left == 0) ++next_;
    }
  }

 private:
  static constexpr int kMost = 8, kRowsAtOnce = 8, kSecondCache = 2;
  static constexpr std::int64_t kLine = 64;
  struct Rows {
    const char* data;
    std::int64_t left, bytes, stride;
  };
  Rows list_[kMost];
  int count_ = 0, next_ = 0;
};

}  // namespace tessera::cpu
