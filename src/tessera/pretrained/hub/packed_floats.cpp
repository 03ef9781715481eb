#include "tessera/pretrained/hub/packed_floats.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"

namespace tessera {

namespace {

constexpr std::int64_t kBytesOfBlock = 16, kOfBlock = 2 * kBytesOfBlock;
constexpr int kScaleBias = 127;
constexpr float kNumbers[] = {0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                              -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};

}  // namespace

void PackedFloats::require_fit() const {
  const Shape &of = blocks->type.shape, &by = scales->type.shape;
  const bool fits = of.ndim() == 4 && of[3] == kBytesOfBlock && by == Shape{of[0], of[1], of[2]} &&
                    blocks->other_dtype == "U8" && scales->other_dtype == "U8";
  if (!fits)
    fail(Fault::Checkpoint, blocks_file->path(), ": tensor '", printable(blocks->name), "' is ", of,
         " and '", printable(scales->name), "' ", by,
         "; numbers in 4 bits are U8 [experts, out, blocks, ", kBytesOfBlock,
         "] with scales U8 [experts, out, blocks]; download them again");
}

Shape PackedFloats::shape() const {
  const Shape& of = blocks->type.shape;
  return {of[0], of[2] * kOfBlock, of[1]};
}

void PackedFloats::read(std::int64_t first, std::span<float> out) const {
  const Shape& of = blocks->type.shape;
  const std::int64_t results = of[1], per_row = of[2], all = results * per_row,
                     size = all * kOfBlock;
  std::vector<std::byte> packed(static_cast<std::size_t>(all * kBytesOfBlock)),
      powers(static_cast<std::size_t>(all));
  for (std::int64_t done = 0; done < std::ssize(out);) {
    const std::int64_t expert = (first + done) / size, begin = (first + done) % size,
                       end = std::min(size, begin + std::ssize(out) - done);
    blocks_file->read(*blocks, expert * std::ssize(packed), packed);
    scales_file->read(*scales, expert * all, powers);
    for (std::int64_t block = 0; block < all; ++block) {
      const std::int64_t row = block / per_row, in = block % per_row * kOfBlock;
      const float scale = std::ldexp(
          1.0F, std::to_integer<int>(powers[static_cast<std::size_t>(block)]) - kScaleBias);
      for (std::int64_t i = 0; i < kOfBlock; ++i) {
        const std::int64_t at = (in + i) * results + row;
        if (at < begin || at >= end) continue;
        const auto two = std::to_integer<unsigned>(
            packed[static_cast<std::size_t>(block * kBytesOfBlock + i / 2)]);
        out[static_cast<std::size_t>(done + at - begin)] =
            kNumbers[i % 2 == 0 ? two & 15 : two >> 4] * scale;
      }
    }
    done += end - begin;
  }
}

}  // namespace tessera
