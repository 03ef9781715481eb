#pragma once
/// Counts in sentences.

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/text.h"

namespace tessera {

/// "1 token", "2 tokens"
inline std::string counted(std::int64_t n, std::string_view noun) {
  return text(n, " ", noun, n == 1 ? "" : "s");
}

}  // namespace tessera
