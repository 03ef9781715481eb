#pragma once
/// How wide the feed-forward parts of DINOv2 are.

#include <cstdint>
#include <string_view>

#include "tessera/models/config.h"

namespace tessera {

inline constexpr std::string_view kDinov2Gelu = "gelu", kDinov2SwiGlu = "swiglu";

/// Hidden channels where the ratio to the width is a whole number: of SwiGLU two thirds of them, up
/// to a multiple of 8.
constexpr std::int64_t dinov2_hidden(std::int64_t width, std::int64_t ratio, bool gated) {
  const std::int64_t hidden = width * ratio;
  return gated ? (2 * hidden / 3 + 7) / 8 * 8 : hidden;
}
/// The largest ratio of which so many come; 0: of none.
inline std::int64_t dinov2_ratio(const ModelConfig& c) {
  const bool gated = c.activation == kDinov2SwiGlu;
  if (c.width < 1 || c.ffn_width < 1) return 0;
  const std::int64_t ratio =
      gated ? (3 * (c.ffn_width + 1) - 1) / (2 * c.width) : c.ffn_width / c.width;
  return dinov2_hidden(c.width, ratio, gated) == c.ffn_width ? ratio : 0;
}

}  // namespace tessera
