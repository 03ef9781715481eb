#pragma once
/// The version of Tessera.

namespace tessera {

/// As in CMakeLists.txt; a test holds them together.
inline constexpr const char* kVersion = "0.1.0";

}  // namespace tessera
