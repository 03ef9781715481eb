#include "tessera/data/picture_resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr int kWeightBits = 22;  // of fractions: 8 bits of a pixel and 2 of sums beyond 1 are left

double weight_at(Resample how, double x) {
  x = std::abs(x);
  switch (how) {
    case Resample::Bilinear: return x < 1 ? 1 - x : 0;
    case Resample::Bicubic: {
      constexpr double a = -0.5;
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
    }
    case Resample::Lanczos: {
      const auto sinc = [](double y) {
        y *= std::numbers::pi;
        return y == 0 ? 1 : std::sin(y) / y;
      };
      return x < 3 ? sinc(x) * sinc(x / 3) : 0;
    }
  }
  return 0;
}
/// Pixels to each side of which the filter knows, where nothing shrinks.
double reach_of(Resample how) {
  return how == Resample::Bilinear ? 1 : how == Resample::Bicubic ? 2 : 3;
}

/// Of each pixel of a line, those that it is made of.
struct Taps {
  std::int64_t each = 0;                    // places for weights of a pixel
  std::vector<std::int64_t> first, counts;  // of old pixels
  std::vector<std::int32_t> weights;        // [pixels, each]
};

Taps taps_of(std::int64_t old, std::int64_t size, Resample how) {
  const double scale = static_cast<double>(old) / static_cast<double>(size),
               stretch = std::max(scale, 1.0), reach = reach_of(how) * stretch;
  Taps out{static_cast<std::int64_t>(std::ceil(reach)) * 2 + 1, {}, {}, {}};
  out.weights.resize(static_cast<std::size_t>(size * out.each));
  std::vector<double> weights;
  for (std::int64_t i = 0; i < size; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale, shrink = 1.0 / stretch;
    const std::int64_t first = std::max<std::int64_t>(
                           static_cast<std::int64_t>(centre - reach + 0.5), 0),
                       end = std::min<std::int64_t>(static_cast<std::int64_t>(centre + reach + 0.5),
                                                    old);
    weights.clear();
    double sum = 0;
    for (std::int64_t k = first; k < end; ++k) {
      weights.push_back(weight_at(how, (static_cast<double>(k) - centre + 0.5) * shrink));
      sum += weights.back();
    }
    const std::int64_t at = i * out.each;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const double share = (sum != 0 ? weights[k] / sum : weights[k]) * (1 << kWeightBits);
      out.weights[static_cast<std::size_t>(at) + k] =
          static_cast<std::int32_t>(share < 0 ? share - 0.5 : share + 0.5);
    }
    out.first.push_back(first);
    out.counts.push_back(end - first);
  }
  return out;
}

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

/// Lines of `from`, `line` bytes apart, each as wide as the taps say.
template <int kChannels>
std::vector<std::uint8_t> along_lines(const std::uint8_t* from, std::int64_t line,
                                      std::int64_t lines, const Taps& taps) {
  const std::int64_t width = std::ssize(taps.first);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(lines * width * kChannels));
  std::uint8_t* to = out.data();
  for (std::int64_t y = 0; y < lines; ++y, from += line) {
    for (std::int64_t x = 0; x < width; ++x) {
      const auto at = static_cast<std::size_t>(x);
      const std::uint8_t* pixel = from + taps.first[at] * kChannels;
      const std::int32_t* weight = taps.weights.data() + x * taps.each;
      std::int32_t sums[kChannels];
      std::ranges::fill(sums, 1 << (kWeightBits - 1));
      for (std::int64_t k = 0; k < taps.counts[at]; ++k, pixel += kChannels)
        for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weight[k];
      for (int c = 0; c < kChannels; ++c) *to++ = to_byte(sums[c]);
    }
  }
  return out;
}

/// Columns of lines of `line` bytes, each as high as the taps say.
std::vector<std::uint8_t> along_columns(const std::uint8_t* from, std::int64_t between,
                                        std::int64_t line, const Taps& taps) {
  const std::int64_t height = std::ssize(taps.first);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(height * line));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(line));
  for (std::int64_t y = 0; y < height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    std::ranges::fill(sums, 1 << (kWeightBits - 1));
    for (std::int64_t k = 0; k < taps.counts[at]; ++k) {
      const std::uint8_t* const row = from + (taps.first[at] + k) * between;
      const std::int32_t weight = taps.weights[static_cast<std::size_t>(y * taps.each + k)];
      for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += row[x] * weight;
    }
    std::ranges::transform(sums, out.begin() + y * line, to_byte);
  }
  return out;
}

}  // namespace

Picture resized(const Picture& picture, const PictureBox& box, std::int64_t height,
                std::int64_t width, Resample how) {
  const std::int64_t channels = picture.channels, line = picture.width * channels;
  check(box.top >= 0 && box.left >= 0 && box.height > 0 && box.width > 0 && height > 0 &&
            width > 0 && box.top + box.height <= picture.height &&
            box.left + box.width <= picture.width && (channels == 1 || channels == 3),
        "a box beyond its picture");
  const std::uint8_t* from = picture.pixels.data() + box.top * line + box.left * channels;
  std::int64_t between = line, rows = box.height, columns = box.width;
  Picture out{height, width, channels, {}};
  const auto take = [&](std::vector<std::uint8_t> pixels) {
    out.pixels = std::move(pixels);
    from = out.pixels.data();
    between = columns * channels;
  };
  const auto in_lines = [&] {
    if (columns == width) return;
    const Taps taps = taps_of(columns, width, how);
    columns = width;
    take(channels == 1 ? along_lines<1>(from, between, rows, taps)
                       : along_lines<3>(from, between, rows, taps));
  };
  const auto in_columns = [&] {
    if (rows == height) return;
    const Taps taps = taps_of(rows, height, how);
    rows = height;
    take(along_columns(from, between, columns * channels, taps));
  };
  if (height < box.height && box.height - height > 2 * (box.width - width)) in_columns();
  in_lines();
  in_columns();
  if (!out.pixels.empty()) return out;
  for (std::int64_t y = 0; y < height; ++y)
    out.pixels.insert(out.pixels.end(), from + y * line, from + y * line + width * channels);
  return out;
}

}  // namespace tessera
