#pragma once
/// Pictures in other sizes, to the bytes that Pillow makes.

#include <array>
#include <cstdint>
#include <string_view>

#include "tessera/files/picture.h"

namespace tessera {

/// How a pixel follows from those near it. A larger picture is averaged over as many more (antialias).
enum class Resample { Bilinear, Bicubic, Lanczos };
inline constexpr std::array<std::string_view, 3> kResamples = {"bilinear", "bicubic", "lanczos"};

/// A part of a picture.
struct PictureBox {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  friend bool operator==(const PictureBox&, const PictureBox&) = default;
};

/// What lies in `box`, which is within the picture, in another size of 1 x 1 or more. Nothing beyond
/// the box counts, as if it had been cut out before.
///
/// Source: Pillow's Resample.c, of 8 bits: weights of the filter, stretched by what the picture
/// shrinks, add up to 1, are rounded to multiples of 2^-22, and sums are rounded to bytes: first along
/// lines, then along columns. Pillow 13 begins with columns where the height shrinks by more than
/// twice what the width does, in pixels; earlier ones never do, and differ there by rounding.
Picture resized(const Picture& picture, const PictureBox& box, std::int64_t height,
                std::int64_t width, Resample how);

}  // namespace tessera
