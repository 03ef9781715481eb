#pragma once
/// Work that is worth waking a thread for: an order above what waking it costs.

#include <cstdint>

namespace tessera::cpu {

inline constexpr std::int64_t kGrainBytes = 64 << 10;  // copied or filled
inline constexpr double kFlopsPerThread = 5e5;         // some 10 us

}  // namespace tessera::cpu
