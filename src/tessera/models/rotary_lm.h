#pragma once
/// What the families have in common that are built as LLaMA is: pre-norm layers with RMS norm,
/// rotary positions, SwiGLU, grouped queries.

#include "tessera/base/joined.h"
#include "tessera/models/causal_lm.h"

namespace tessera {

/// The fields that all decoders read.
inline constexpr ReadField kDecoderReads[] = {{"layers"},
                                              {"heads"},
                                              {"width"},
                                              {"context"},
                                              {"vocab-size"},
                                              {"dropout"},
                                              {"attention-dropout"},
                                              {"norm-eps"},
                                              {"init-std"}};
inline constexpr ReadField kRopeReads[] = {{"rope-base"}, {"rope-scaling"}};
inline constexpr ReadField kWindowReads[] = {{"window"}, {"global-every"}};
/// Of decoders a share of whose channels rotates.
inline constexpr ReadField kShareReads[] = {{"ffn-width"}, {"rotary-share"}};
inline constexpr auto kPartialReads = joined(kDecoderReads, kRopeReads, kShareReads);
/// Of LLaMA and its heirs.
inline constexpr ReadField kSwiGluReads[] = {
    {"kv-heads"}, {"ffn-width", "0 is 8/3 x width, up to a multiple of 4"}};

/// Of models whose feed-forward layers are experts.
inline constexpr ReadField kRouterReads[] = {{"num-experts"},
                                             {"moe-layer-freq"},
                                             {"moe-ffn-hidden-size"},
                                             {"moe-router-topk"},
                                             {"moe-router-score-function"},
                                             {"moe-router-pre-softmax"},
                                             {"moe-router-topk-scaling-factor"},
                                             {"moe-router-num-groups"},
                                             {"moe-router-group-topk"},
                                             {"moe-router-enable-expert-bias"},
                                             {"moe-input-jitter-eps"},
                                             {"moe-expert-capacity-factor"},
                                             {"moe-min-capacity"},
                                             {"moe-token-drop-policy"},
                                             {"moe-aux-loss-samples"},
                                             {"moe-use-residual"},
                                             {"moe-shared-expert-gate"}};
inline constexpr ReadField kSharedExpertReads[] = {{"moe-shared-expert-intermediate-size"}};
inline constexpr auto kExpertReads = joined(kRouterReads, kSharedExpertReads);

inline constexpr ReadField kRotaryPackedReads[] = {{"reset-attention-mask"}};
inline constexpr auto kRotaryTasks = causal_tasks<kTiedReads, kRotaryPackedReads>();

/// Losses of routers are a part of the language model's alone.
inline constexpr ReadField kExpertLmReads[] = {{"reset-attention-mask"},
                                               {"moe-aux-loss-coeff"},
                                               {"moe-z-loss-coeff"},
                                               {"moe-router-bias-update-rate"}};
inline constexpr auto kExpertTasks = causal_tasks<kTiedReads, kExpertLmReads>();

/// Of families whose logits have a cap.
inline constexpr ReadField kCappedReads[] = {{"tied-head"}, {"logit-cap"}};
inline constexpr auto kCappedTasks = causal_tasks<kCappedReads, kRotaryPackedReads>();

/// No biases, and a head of its own.
void publish_rotary(ModelConfig& config);
/// SwiGLU has three matrices where others have two: 8/3 of the width costs what 4 of it do there.
void complete_rotary(ModelConfig& config);
/// Heads of an odd width; what is wrong with windows.
void find_rotary_problems(const ModelConfig& config, FieldProblems& problems);

/// What a family adds to the layers of LLaMA.
struct RotaryLayer {
  bool qkv_bias = false, head_norm = false;
};
constexpr TransformerLayer rotary_layer(const RotaryLayer& with = {}) {
  return {.feed_forward = FeedForward::SwiGlu,
          .norm = NormKind::Rms,
          .bias = false,
          .qkv_bias = with.qkv_bias,
          .head_norm = with.head_norm,
          .rotary = true};
}

}  // namespace tessera
