#pragma once
/// A decoder for each format of pictures (files/picture.h), and what they refuse alike.

#include <string>
#include <string_view>

#include "tessera/files/picture.h"

namespace tessera {

inline constexpr std::string_view kJpegBegin = "\xFF\xD8\xFF", kPngBegin = "\x89PNG\r\n\x1A\n";

/// Three channels as they are stored, and what EXIF data says of them.
struct StoredPicture {
  Picture picture;
  int orientation = 1;
};
StoredPicture decode_jpeg(std::string_view bytes, const std::string& name,
                          std::int64_t most_pixels);
StoredPicture decode_png(std::string_view bytes, const std::string& name, std::int64_t most_pixels);

/// The tag Orientation of EXIF data, a header of TIFF and its directory: 1 to 8; 1 where there is
/// none, or it is damaged.
int exif_orientation(std::string_view tiff);

// Errors: Fault::Data.
[[noreturn]] void refuse_format(std::string_view begin, const std::string& name);
[[noreturn]] void refuse_damage(std::string_view format, std::string_view why,
                                const std::string& name);
/// Of no pixels, and of more than `most`.
void refuse_size(std::uint64_t height, std::uint64_t width, const std::string& name,
                 std::int64_t most = kMostPixels);

}  // namespace tessera
