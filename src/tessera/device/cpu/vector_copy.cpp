#include "tessera/device/cpu/vector_copy.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/device/cpu/grain.h"

namespace tessera::cpu {

namespace {

constexpr std::int64_t kBlock = 16;  // rows and columns of a block that is transposed

/// Like memcpy. For short runs of whole cache lines, such as one head of attention, the call would
/// cost as much as the copy.
void copy_few(const std::byte* from, std::byte* to, std::size_t bytes) {
  constexpr std::size_t kShort = 512, kPiece = 64;
  if (bytes <= kShort) {
    for (; bytes >= kPiece; bytes -= kPiece, from += kPiece, to += kPiece)
      std::memcpy(to, from, kPiece);
    if (bytes == 0) return;
  }
  std::memcpy(to, from, bytes);
}

}  // namespace

StridedCopy::StridedCopy(const Shape& shape, const Shape& from, const Shape& to, int element_bytes)
    : size_(element_bytes) {
  Shape sizes, f, t;  // dims of size 1 dropped, neighbours joined where both sides walk them as one
  for (int d = 0; d < shape.ndim(); ++d) {
    if (shape[d] == 1) continue;
    if (!sizes.empty() && f.back() == from[d] * shape[d] && t.back() == to[d] * shape[d]) {
      const int last = sizes.ndim() - 1;
      sizes[last] *= shape[d], f[last] = from[d], t[last] = to[d];
    } else {
      sizes.push_back(shape[d]), f.push_back(from[d]), t.push_back(to[d]);
    }
  }
  if (sizes.empty()) sizes = {1}, f = {1}, t = {1};
  const int last = sizes.ndim() - 1;
  columns_ = sizes[last], column_from_ = f[last], column_to_ = t[last];
  int row = -1;
  for (int d = 0; d < last && column_from_ != 1; ++d) {
    if (f[d] == 1) row = d;
  }
  for (int d = 0; d < last; ++d) {
    if (d == row) {
      rows_ = sizes[d], row_from_ = f[d], row_to_ = t[d];
    } else {
      outer_.push_back(sizes[d]), outer_from_.push_back(f[d]), outer_to_.push_back(t[d]);
    }
  }
}

/// visit(offset in from, offset in to) for the outer indices [begin, end), in order.
template <typename Visit>
void StridedCopy::each_outer(std::int64_t begin, std::int64_t end, const Visit& visit) const {
  Shape at = Shape::of(outer_.ndim(), 0);
  std::int64_t from = 0, to = 0, rest = begin;
  for (int d = outer_.ndim() - 1; d >= 0; --d) {
    at[d] = rest % outer_[d];
    rest /= outer_[d];
    from += at[d] * outer_from_[d], to += at[d] * outer_to_[d];
  }
  for (std::int64_t i = begin; i < end; ++i) {
    visit(from, to);
    for (int d = outer_.ndim() - 1; d >= 0; --d) {
      from += outer_from_[d], to += outer_to_[d];
      if (++at[d] < outer_[d]) break;
      from -= outer_[d] * outer_from_[d], to -= outer_[d] * outer_to_[d];
      at[d] = 0;
    }
  }
}

void StridedCopy::run(const std::byte* from, std::byte* to, Pool& pool) const {
  const std::int64_t outer = outer_.numel(), bytes = rows_ * columns_ * size_;
  if (columns_ == 0 || rows_ == 0 || outer == 0) return;
  if (column_from_ == 1 && column_to_ == 1 && outer == 1) {
    return pool.split(bytes, kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
    });
  }
  const bool runs = column_from_ == 1 && column_to_ == 1;
  // Blocks of one outer index are shared out as well: there may be one alone.
  const std::int64_t blocks = runs ? 1 : (columns_ + kBlock - 1) / kBlock;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes * blocks / bytes);
  pool.split(outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    if (runs) return copy_runs(from, to, begin, end);
    switch (size_) {
      case 1: return copy_blocks<std::uint8_t>(from, to, begin, end);
      case 2: return copy_blocks<std::uint16_t>(from, to, begin, end);
      case 4: return copy_blocks<std::uint32_t>(from, to, begin, end);
      default: return copy_blocks<std::uint64_t>(from, to, begin, end);
    }
  });
}

void StridedCopy::copy_runs(const std::byte* from, std::byte* to, std::int64_t begin,
                            std::int64_t end) const {
  const std::size_t bytes = static_cast<std::size_t>(columns_ * size_);
  each_outer(begin, end, [&](std::int64_t f, std::int64_t t) {
    copy_few(from + f * size_, to + t * size_, bytes);
  });
}

/// All rows of some columns, through blocks: lines are read and written whole, because columns that
/// lie a power of two apart push each other out of the cache, and in few instructions, so that many
/// are on their way at once.
template <typename T>
void StridedCopy::transpose(const T* from, T* to, std::int64_t columns) const {
  T read[kBlock][kBlock], written[kBlock][kBlock];
  for (std::int64_t r0 = 0; r0 < rows_; r0 += kBlock) {
    const std::int64_t rows = std::min(kBlock, rows_ - r0);
    const bool whole = rows == kBlock && columns == kBlock && column_to_ == 1;
    for (std::int64_t c = 0; c < columns; ++c) {
      const T* const line = from + r0 + c * column_from_;
      whole ? void(std::memcpy(read[c], line, sizeof(read[c])))
            : void(std::copy_n(line, rows, read[c]));
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) written[r][c] = read[c][r];
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      T* const line = to + (r0 + r) * row_to_;
      if (whole) {
        std::memcpy(line, written[r], sizeof(written[r]));
      } else {
        for (std::int64_t c = 0; c < columns; ++c) line[c * column_to_] = written[r][c];
      }
    }
  }
}

template <typename T>
void StridedCopy::copy_blocks(const std::byte* from, std::byte* to, std::int64_t begin,
                              std::int64_t end) const {
  const T* const x = reinterpret_cast<const T*>(from);
  T* const y = reinterpret_cast<T*>(to);
  const std::int64_t blocks = (columns_ + kBlock - 1) / kBlock;
  while (begin < end) {
    const std::int64_t outer = begin / blocks, first = begin % blocks;
    const std::int64_t last = std::min(blocks, first + end - begin),
                       stop = std::min(columns_, last * kBlock);
    each_outer(outer, outer + 1, [&](std::int64_t f, std::int64_t t) {
      for (std::int64_t c0 = first * kBlock; c0 < stop; c0 += kBlock) {
        const std::int64_t columns = std::min(kBlock, stop - c0);
        const T* in = x + f + c0 * column_from_;
        T* out = y + t + c0 * column_to_;
        if (row_from_ == 1) {
          transpose(in, out, columns);
        } else {
          for (std::int64_t c = 0; c < columns; ++c) out[c * column_to_] = in[c * column_from_];
        }
      }
    });
    begin += last - first;
  }
}

}  // namespace tessera::cpu
