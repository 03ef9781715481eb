#pragma once
/// The row functions of softmax and cross entropy, by the dtype of x and of what has its shape; all
/// else is f32.

#include <cstdint>

namespace tessera::cpu {

/// Rows [begin, end) of n numbers.
struct RowSpan {
  std::int64_t n, begin, end;
};

struct Labels {
  const std::int32_t* at;  // of each row
  std::int64_t ignore;     // says that a row has none
  std::int64_t first;      // the vocabulary's index of column 0
};

struct RowFunctions {
  /// `terms`: room for a row, where x has 16 bits.
  void (*softmax)(const RowSpan& rows, const void* x, void* y, float* terms) = nullptr;
  void (*cross_entropy)(const RowSpan& rows, const void* logits, const Labels& labels, float* loss,
                        float* logsumexp) = nullptr;
  void (*cross_entropy_grad)(const RowSpan& rows, const void* logits, const Labels& labels,
                             const float* logsumexp, const float* dloss, void* dlogits) = nullptr;
};

}  // namespace tessera::cpu
