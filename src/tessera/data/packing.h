#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tessera {

/// How documents become samples.
enum class Packing {
  Wrapped,  // joined, and cut into windows of the context (token_files/sampler.h)
  None,     // a document each, padded or cut to the context
  Bfd,      // several whole documents each: best fit decreasing
};
inline constexpr std::array<std::string_view, 3> kPackings = {"wrapped", "none", "bfd"};

inline std::string_view to_text(Packing packing) {
  return kPackings[static_cast<std::size_t>(packing)];
}

}  // namespace tessera
