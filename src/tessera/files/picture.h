#pragma once
/// Pictures in files of JPEG and PNG, decoded to bytes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Red, green and blue of each pixel, or one grey, line by line from the top: [height, width,
/// channels].
struct Picture {
  std::int64_t height = 0, width = 0, channels = 3;
  std::vector<std::uint8_t> pixels;
  friend bool operator==(const Picture&, const Picture&) = default;
};

/// More pixels than any photograph has: what is decoded takes at most 256 MiB.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
inline constexpr std::uint64_t kMostSideOfPicture = 65500;  // as of libjpeg

/// The picture in `bytes`, known by its first bytes, in three colours, as Pillow's convert("RGB")
/// makes them, and turned as its EXIF data says, as transformers' load_image turns it. Transparency
/// is dropped, grey is written three times, palettes are looked up, CMYK is taken for Adobe's
/// (inverted), gamma and colour profiles are passed over. Of 16 bits the upper 8 count, of grey too,
/// which Pillow cuts off at 255. Of an animated PNG it is the first picture.
///
/// Errors: Fault::Data, naming `name`: another format, with its name; damage, also such that libjpeg
/// only warns of (data that ends early, codes that there are not); more than `most_pixels`; what the
/// libraries do not read (12 bits, arithmetic codes, two channels).
Picture decode_picture(std::string_view bytes, const std::string& name,
                       std::int64_t most_pixels = kMostPixels);

/// Reads so much of a file as says how large its picture is, and refuses what decode_picture would
/// by that. Errors: the same.
void check_picture(const std::string& path);

/// "a picture (WebP)": by the first bytes, of formats that are not read; empty: none of them.
std::string other_picture(std::string_view begin);

/// One channel in place of three, as Pillow's convert("L"): (19595 r + 38470 g + 7471 b + 2^15) /
/// 2^16.
Picture grey(const Picture& picture);

}  // namespace tessera
