#pragma once
/// The words of the text form for enumerators, in their order; print and parse share
/// them.

#include <array>
#include <string_view>

namespace tessera::graph_words {

inline constexpr std::array<std::string_view, 3> kForms = {"global", "placed", "local"};
inline constexpr std::array<std::string_view, 3> kPhases = {"fwd", "bwd", "upd"};
inline constexpr std::array<std::string_view, 9> kRoles = {
    "parameter", "moment", "counter", "cache", "copy", "scale", "rate", "reference", "buffer"};
inline constexpr std::array<std::string_view, 4> kInits = {"constant", "normal", "uniform",
                                                           "truncated_normal"};
inline constexpr std::array<std::string_view, 5> kOutputs = {"next", "metric", "slot", "accumulate",
                                                             "send"};

}  // namespace tessera::graph_words
