#pragma once
/// JSON of users, whose depth is looked at before values of it are copied, which recurses.

#include <string_view>

namespace tessera {

inline constexpr int kMostJsonDepth = 100;

/// Whether lists and objects lie within others deeper than kMostJsonDepth.
bool is_deep_json(std::string_view bytes);

/// What Json::parse says without exceptions; discarded, too, where it is deep.
template <typename Json>
Json parse_shallow(std::string_view bytes) {
  if (is_deep_json(bytes)) return Json(Json::value_t::discarded);
  return Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
}

}  // namespace tessera
