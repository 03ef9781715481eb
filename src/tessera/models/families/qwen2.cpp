/// Qwen2 and Qwen2.5 (Yang et al. 2024): LLaMA with biases of queries, keys and values.

#include "tessera/models/families/qwen.h"

namespace tessera {

extern constinit const ModelFamily kQwen2 = qwen_family({
    .name = "qwen2",
    .doc = "LLaMA with biases of queries, keys and values",
    .layer = rotary_layer({.qkv_bias = true}),
});

}  // namespace tessera
