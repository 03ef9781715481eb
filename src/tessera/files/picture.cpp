#include "tessera/files/picture.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/files/pictures/decoders.h"

namespace tessera {

namespace {

struct OtherPicture {
  std::string_view begin, what;
  std::size_t at = 0;  // where it is
};
constexpr OtherPicture kOtherPictures[] = {
    {"GIF8", "GIF"},         {"BM", "BMP"},           {"WEBP", "WebP", 8},
    {"ftypavif", "AVIF", 4}, {"ftypheic", "HEIC", 4}, {"ftypmif1", "HEIC", 4},
    {"ftypheix", "HEIC", 4}, {{"II*\0", 4}, "TIFF"},  {{"MM\0*", 4}, "TIFF"},
    {"\xFF\x0A", "JPEG XL"}, {"JXL ", "JPEG XL", 4},  {"jP  ", "JPEG 2000", 4},
    {"\x8AMNG", "MNG"},      {"\x8BJNG", "JNG"}};

/// `picture`, stored as Exif's tag Orientation says, as it is to be seen.
Picture turned(Picture picture, int orientation) {
  if (orientation == 1) return picture;
  const bool swapped = orientation >= 5,
             from_below =
                 orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
             from_right =
                 orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Picture out{picture.height, picture.width, picture.channels, {}};
  if (swapped) std::swap(out.height, out.width);
  out.pixels.reserve(picture.pixels.size());
  for (std::int64_t y = 0; y < out.height; ++y) {
    for (std::int64_t x = 0; x < out.width; ++x) {
      const std::int64_t line = swapped ? x : y, column = swapped ? y : x,
                         row = from_below ? picture.height - 1 - line : line,
                         at = from_right ? picture.width - 1 - column : column;
      const auto from = picture.pixels.begin() + (row * picture.width + at) * picture.channels;
      out.pixels.insert(out.pixels.end(), from, from + picture.channels);
    }
  }
  return out;
}

}  // namespace

std::string other_picture(std::string_view begin) {
  for (const auto& [bytes, what, at] : kOtherPictures)
    if (begin.size() > at && begin.substr(at).starts_with(bytes))
      return text("a picture (", what, ")");
  return "";
}

void refuse_format(std::string_view begin, const std::string& name) {
  const std::string other = other_picture(begin);
  fail(Fault::Data, "'", name, "' is ",
       !other.empty()  ? other
       : begin.empty() ? "empty"
                       : "no picture: its first bytes are neither those of JPEG nor of PNG",
       !other.empty() ? "; convert it to PNG or JPEG" : "; replace it, or take it away");
}

void refuse_size(std::uint64_t height, std::uint64_t width, const std::string& name,
                 std::int64_t most) {
  if (height > 0 && width > 0 && std::max(height, width) <= kMostSideOfPicture &&
      height <= static_cast<std::uint64_t>(most) / width)
    return;
  fail(Fault::Data, "'", name, "' is a picture of ", width, " x ", height,
       " pixels; there must be ", "some, at most ", most, " in all and ", kMostSideOfPicture,
       " a side: make it smaller, or take it away");
}

void refuse_damage(std::string_view format, std::string_view why, const std::string& name) {
  fail(Fault::Data, "'", name, "' is a damaged ", format, ": ", why,
       "; replace it, or take it away");
}

Picture decode_picture(std::string_view bytes, const std::string& name, std::int64_t most_pixels) {
  const bool jpeg = bytes.starts_with(kJpegBegin);
  if (!jpeg && !bytes.starts_with(kPngBegin)) refuse_format(bytes, name);
  StoredPicture stored = (jpeg ? decode_jpeg : decode_png)(bytes, name, most_pixels);
  return turned(std::move(stored.picture), stored.orientation);
}

Picture grey(const Picture& picture) {
  Picture out{picture.height, picture.width, 1, {}};
  out.pixels.reserve(picture.pixels.size() / 3);
  for (std::size_t i = 0; i + 2 < picture.pixels.size(); i += 3)
    out.pixels.push_back(
        static_cast<std::uint8_t>((19595U * picture.pixels[i] + 38470U * picture.pixels[i + 1] +
                                   7471U * picture.pixels[i + 2] + 0x8000U) >>
                                  16));
  return out;
}

}  // namespace tessera
