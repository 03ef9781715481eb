/// gpt-oss (OpenAI 2025): experts with biases, sinks of attention, windows in every other layer.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kGptOssOwnReads[] = {{"head-width"}, {"kv-heads"}, {"ffn-width"}};
constexpr auto kGptOssReads =
    joined(kDecoderReads, kRopeReads, kWindowReads, kExpertReads, kGptOssOwnReads);

}  // namespace

extern constinit const ModelFamily kGptOss = {
    .name = "gpt_oss",
    .doc = "experts with biases and capped SwiGLU, sinks of attention, windows in every other layer",
    .reads = kGptOssReads,
    .tasks = kExpertTasks,
    .publish =
        [](ModelConfig& config) {
          publish_rotary(config);
          config.rope_base = 150000;
          config.window = 128;
          config.global_every = 2;
          config.head_width = 64;
          config.experts = {.experts = 128, .chosen = 4, .balance = 0.001};
        },
    .complete = complete_rotary,
    .find_problems = find_rotary_problems,
    .layer = {.feed_forward = FeedForward::CappedSwiGlu,
              .norm = NormKind::Rms,
              .bias = false,
              .qkv_bias = true,
              .proj_bias = true,
              .ffn_bias = true,
              .sinks = true,
              .rotary = true},
};

}  // namespace tessera
