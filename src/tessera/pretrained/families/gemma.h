#pragma once
/// What the folders of Gemma's versions have alike.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

inline constexpr HubKey kGemmaShared[] = {
    kHubAttentionBias,
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 256},
    kHubOneSided,
};

/// Of version 2 and later; the cap of logits where the file names none.
constexpr auto gemma_later_keys(double logit_cap) {
  const HubKey more[] = {
      hub_activation("hidden_activation", "gelu_pytorch_tanh"),
      hub_window(4096),
      {.key = "layer_types", .use = HubUse::Own},
      {.key = "final_logit_softcapping",
       .slot = &ModelConfig::logit_cap,
       .standard = logit_cap,
       .null = 0.0,
       .least = 0},
      {.key = "query_pre_attn_scalar", .slot = &ModelConfig::query_scalar, .standard = 256},
  };
  return joined(kGemmaShared, more);
}

/// Of the smallest model of versions 2 and 3.
constexpr HubRotaryStandard gemma_later_sizes(std::int64_t vocabulary, std::int64_t context) {
  return {.width = 2304,
          .layers = 26,
          .heads = 8,
          .kv_heads = 4,
          .ffn_width = 9216,
          .vocabulary = vocabulary,
          .context = context,
          .tied = true};
}

}  // namespace tessera
