#pragma once
/// The parts of MemoryUse: their keys in JSON, and their names.

#include "tessera/plan/plan.h"

namespace tessera {

struct MemoryPart {
  const char *key, *name;
  std::int64_t MemoryUse::*bytes;
};
inline constexpr MemoryPart kMemoryParts[] = {
    {"parameters", "parameters", &MemoryUse::parameters},
    {"gradients", "gradients", &MemoryUse::gradients},
    {"optimizer", "optimizer state", &MemoryUse::optimizer},
    {"caches", "caches", &MemoryUse::caches},
    {"activations", "saved activations", &MemoryUse::activations},
    {"packed_weights", "packed weights", &MemoryUse::packed},
    {"temporaries", "temporaries", &MemoryUse::temporaries},
    {"inputs", "batch", &MemoryUse::inputs},
};

}  // namespace tessera
