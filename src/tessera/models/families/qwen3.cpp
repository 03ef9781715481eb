/// Qwen3 (Yang et al. 2025): LLaMA with an RMS norm of each head of queries and keys.

#include "tessera/models/families/qwen.h"

namespace tessera {

namespace {

constexpr ReadField kQwen3OwnReads[] = {{"head-width"}, {"attention-bias"}};
constexpr auto kQwen3Reads = joined(kQwenReads, kQwen3OwnReads);

}  // namespace

extern constinit const ModelFamily kQwen3 = qwen_family({
    .name = "qwen3",
    .doc = "LLaMA with norms of queries and keys",
    .reads = kQwen3Reads,
    .layer = rotary_layer({.head_norm = true}),
});

}  // namespace tessera
