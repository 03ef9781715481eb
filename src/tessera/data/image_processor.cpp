#include "tessera/data/image_processor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/philox.h"
#include "tessera/base/text.h"
#include "tessera/base/words.h"

namespace tessera {

namespace {

constexpr std::int64_t kMostSide = 16384;  // in pixels, of what is made of a picture

std::string sides_text(std::int64_t height, std::int64_t width) { return text(height, "x", width); }

double number_in(std::string_view key, std::string_view word) {
  double out = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  require(error == std::errc() && end == word.data() + word.size() && std::isfinite(out), key,
          " is '", word, "'; it must be a number");
  return out;
}

std::int64_t side_in(std::string_view key, std::string_view word) {
  const double out = number_in(key, word);
  require(out >= 1 && out <= kMostSide && out == std::floor(out), key, " has the side ", word,
          "; sides are from 1 to ", kMostSide, " pixels");
  return static_cast<std::int64_t>(out);
}

void put_sides(std::string_view key, const std::string& word, std::int64_t& height,
               std::int64_t& width) {
  const std::vector<std::string> sides = split(word, 'x');
  require(sides.size() == 2, key, " is '", word, "'; it must be HEIGHTxWIDTH, as 224x224");
  height = side_in(key, sides[0]);
  width = side_in(key, sides[1]);
}

std::vector<double> numbers_in(std::string_view key, const std::string& word) {
  std::vector<double> out;
  for (const std::string& each : split(word, ':')) out.push_back(number_in(key, each));
  return out;
}

void put(ImageProcessor& to, std::string_view key, const std::string& word) {
  if (key == "size") return put_sides(key, word, to.height, to.width);
  if (key == "shortest_edge") {
    to.shortest_edge = side_in(key, word);
    return;
  }
  if (key == "crop_size") return put_sides(key, word, to.crop_height, to.crop_width);
  if (key == "rescale_factor") {
    to.rescale_factor = number_in(key, word);
    require(to.rescale_factor > 0, key, " is ", word, "; it must be above 0");
    return;
  }
  if (key == "image_mean") {
    to.mean = numbers_in(key, word);
    return;
  }
  if (key == "image_std") {
    to.std = numbers_in(key, word);
    for (const double each : to.std) require(each > 0, key, " is ", word, "; all must be above 0");
    return;
  }
  require(key == "resample", "'", key, "' is no key of an image processor; known are size, ",
          "shortest_edge, crop_size, resample, rescale_factor, image_mean, image_std");
  const auto found = find_word<Resample>(kResamples, word);
  require(found.has_value(), key, " is '", word, "'; it can be ", join(kResamples));
  to.resample = *found;
}

std::string numbers_text(const std::vector<double>& numbers) {
  std::vector<std::string> out;
  for (const double each : numbers) out.push_back(text(each));
  return join(out, ":");
}

double of_channel(const std::vector<double>& numbers, std::int64_t channel) {
  return numbers.size() == 1 ? numbers[0] : numbers[static_cast<std::size_t>(channel)];
}

/// What each byte of each channel becomes.
struct Normalised {
  std::vector<std::array<float, 256>> of;

  Normalised(const ImageProcessor& processor, std::int64_t channels)
      : of(static_cast<std::size_t>(channels)) {
    for (std::int64_t c = 0; c < channels; ++c)
      for (int byte = 0; byte < 256; ++byte)
        of[static_cast<std::size_t>(c)][static_cast<std::size_t>(byte)] =
            static_cast<float>((byte * processor.rescale_factor - of_channel(processor.mean, c)) /
                               of_channel(processor.std, c));
  }
};

/// [height, width, channels] of a picture, whose line `top` and column `left` come first, to
/// [channels, height, width]; what is not in it is black.
void write_pixels(const Picture& picture, std::int64_t top, std::int64_t left, bool mirrored,
                  const ImageProcessor& processor, std::span<float> out) {
  const std::int64_t channels = picture.channels, height = processor.out_height(),
                     width = processor.out_width();
  check(std::ssize(out) == channels * height * width, "pixels into ", out.size());
  const Normalised normalised(processor, channels);
  std::vector<std::int64_t> columns;  // of the picture, in bytes; below 0: black
  for (std::int64_t x = 0; x < width; ++x) {
    const std::int64_t column = left + (mirrored ? width - 1 - x : x);
    columns.push_back(column < picture.width ? column * channels : -1);
  }
  auto to = out.begin();
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::array<float, 256>& values = normalised.of[static_cast<std::size_t>(c)];
    for (std::int64_t line = top; line < top + height; ++line) {
      const bool within = line >= 0 && line < picture.height;
      const std::uint8_t* const row =
          within ? picture.pixels.data() + line * picture.width * channels + c : nullptr;
      for (const std::int64_t column : columns)
        *to++ = values[within && column >= 0 ? row[column] : 0];
    }
  }
}

/// Where a cut begins; below 0: it is larger, and black is added, the odd line behind.
std::int64_t cut_from(std::int64_t size, std::int64_t cut) {
  return cut > size ? -((cut - size) / 2) : (size - cut) / 2;
}

}  // namespace

ImageProcessor parse_image_processor(std::string_view given, std::int64_t side) {
  ImageProcessor out;
  std::vector<std::string> said;
  for (const std::string& part : split(given, ',')) {
    if (given.empty()) break;
    const std::size_t at = part.find('=');
    require(at != std::string::npos, "'", part, "' is not KEY=VALUE");
    require(std::ranges::find(said, part.substr(0, at)) == said.end(), "'", part.substr(0, at),
            "' is there twice");
    said.push_back(part.substr(0, at));
    put(out, said.back(), part.substr(at + 1));
  }
  require(out.height == 0 || out.shortest_edge == 0, "size is ", sides_text(out.height, out.width),
          " and shortest_edge ", out.shortest_edge, "; give one of them");
  if (out.height == 0 && out.shortest_edge == 0) out.height = out.width = side;
  if (out.height == 0 && out.crop_height == 0) out.crop_height = out.crop_width = side;
  return out;
}

std::string to_text(const ImageProcessor& p) {
  std::string out = p.height > 0 ? text("size=", sides_text(p.height, p.width))
                                 : text("shortest_edge=", p.shortest_edge);
  if (p.crop_height > 0) out += text(",crop_size=", sides_text(p.crop_height, p.crop_width));
  return out + text(",resample=", kResamples[static_cast<std::size_t>(p.resample)],
                    ",rescale_factor=", p.rescale_factor, ",image_mean=", numbers_text(p.mean),
                    ",image_std=", numbers_text(p.std));
}

PictureView draw_view(std::uint64_t key, std::int64_t picture, std::int64_t epoch,
                      std::int64_t height, std::int64_t width) {
  constexpr std::uint64_t kBlocks =
      16;  // of random numbers for a picture; the last: is it mirrored
  constexpr int kAttempts = 10;
  constexpr double kLeastArea = 0.08, kNarrow = 3.0 / 4, kBroad = 4.0 / 3;
  const auto block = [&](std::uint64_t i) {
    return philox(key, static_cast<std::uint64_t>(picture) * kBlocks + i,
                  static_cast<std::uint64_t>(epoch));
  };
  const auto share = [](std::uint32_t bits) { return static_cast<double>(bits) * 0x1p-32; };
  const bool mirrored = (block(kBlocks - 1)[0] & 1) != 0;
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  for (int i = 0; i < kAttempts; ++i) {
    const PhiloxBlock random = block(static_cast<std::uint64_t>(i));
    const double area = h * w * (kLeastArea + share(random[0]) * (1 - kLeastArea)),
                 shape = std::exp(std::log(kNarrow) +
                                  share(random[1]) * (std::log(kBroad) - std::log(kNarrow)));
    const auto wide = static_cast<std::int64_t>(std::lround(std::sqrt(area * shape))),
               high = static_cast<std::int64_t>(std::lround(std::sqrt(area / shape)));
    if (wide < 1 || wide > width || high < 1 || high > height) continue;
    const auto place = [&](std::uint32_t bits, std::int64_t room) {
      return static_cast<std::int64_t>(share(bits) * static_cast<double>(room + 1));
    };
    return {{place(random[2], height - high), place(random[3], width - wide), high, wide},
            mirrored};
  }
  PictureBox box{0, 0, height, width};  // the middle, as broad or narrow as may be
  if (w / h < kNarrow) box.height = std::lround(w / kNarrow);
  if (w / h > kBroad) box.width = std::lround(h * kBroad);
  box.height = std::clamp<std::int64_t>(box.height, 1, height);
  box.width = std::clamp<std::int64_t>(box.width, 1, width);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return {box, mirrored};
}

void process(const Picture& picture, const ImageProcessor& processor, std::span<float> out) {
  std::int64_t height = processor.height, width = processor.width;
  if (const std::int64_t edge = processor.shortest_edge; edge > 0) {
    const bool tall = picture.width <= picture.height;
    const std::int64_t shorter = tall ? picture.width : picture.height,
                       longer = tall ? picture.height : picture.width, to = edge * longer / shorter;
    height = tall ? to : edge;
    width = tall ? edge : to;
    if (to > kMostPixels / edge)
      fail(Fault::Data, "a picture of ", picture.width, " x ", picture.height,
           " pixels has sides too unlike for shortest_edge ", edge, "; cut it, or take it away");
  }
  const Picture small =
      resized(picture, {0, 0, picture.height, picture.width}, height, width, processor.resample);
  write_pixels(small, cut_from(height, processor.out_height()),
               cut_from(width, processor.out_width()), false, processor, out);
}

void process(const Picture& picture, const PictureView& view, const ImageProcessor& processor,
             std::span<float> out) {
  write_pixels(
      resized(picture, view.box, processor.out_height(), processor.out_width(), processor.resample),
      0, 0, view.mirrored, processor, out);
}

}  // namespace tessera
