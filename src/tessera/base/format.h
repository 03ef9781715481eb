#pragma once
/// Numbers in columns.

#include <array>
#include <cstdio>
#include <string>

namespace tessera {

/// As printf, of at most 199 characters.
template <typename... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 200> buffer;
  std::snprintf(buffer.data(), buffer.size(), pattern, args...);
  return buffer.data();
}

}  // namespace tessera
