#pragma once
/// What there is once for each memory of a rank.

#include <array>

#include "tessera/tensor/sharding.h"

namespace tessera {

inline constexpr std::array kMemories = {Memory::Device, Memory::Host};

template <typename T>
struct PerMemory {
  T device{}, host{};

  T& operator[](Memory memory) { return memory == Memory::Device ? device : host; }
  const T& operator[](Memory memory) const { return memory == Memory::Device ? device : host; }
  friend bool operator==(const PerMemory&, const PerMemory&) = default;
};

}  // namespace tessera
