#include <cstdint>
#include <optional>

#include "tessera/files/pictures/decoders.h"

namespace tessera {

namespace {

/// Numbers of TIFF, whose first two letters tell the order of bytes.
struct TiffBytes {
  std::string_view all;
  bool little;

  std::optional<std::uint32_t> number(std::size_t at, std::size_t bytes) const {
    if (at > all.size() || all.size() - at < bytes) return {};
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      const std::size_t from = little ? at + bytes - 1 - i : at + i;
      out = out << 8 | static_cast<unsigned char>(all[from]);
    }
    return out;
  }
};

}  // namespace

int exif_orientation(std::string_view tiff) {
  constexpr std::uint32_t kOrientation = 0x0112, kShort = 3, kEntry = 12;
  const bool little = tiff.starts_with("II");
  if (!little && !tiff.starts_with("MM")) return 1;
  const TiffBytes bytes{tiff, little};
  const auto directory = bytes.number(4, 4);
  const auto count = directory ? bytes.number(*directory, 2) : std::nullopt;
  for (std::size_t i = 0; count && i < *count; ++i) {
    const std::size_t at = *directory + 2 + i * kEntry;
    const auto tag = bytes.number(at, 2), type = bytes.number(at + 2, 2),
               value = bytes.number(at + 8, 2);
    if (!value) return 1;
    if (*tag != kOrientation) continue;
    return *type == kShort && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : 1;
  }
  return 1;
}

}  // namespace tessera
