/// LLaMA (Touvron et al. 2023): pre-norm layers with RMS norm, rotary positions, SwiGLU, grouped
/// queries, no biases.

#include "tessera/models/causal_lm.h"

namespace tessera {

namespace {

constexpr ReadField kLlamaReads[] = {
    {"layers"},     {"heads"},
    {"kv-heads"},   {"width"},
    {"head-width"}, {"attention-bias"},
    {"ffn-bias"},   {"ffn-width", "0 is 8/3 x width, up to a multiple of 4"},
    {"context"},    {"vocab-size"},
    {"dropout"},    {"attention-dropout"},
    {"norm-eps"},   {"rope-base"},
    {"init-std"}};

constexpr ReadField kLlamaLmReads[] = {{"tied-head"}, {"reset-attention-mask"}};

constexpr FamilyTask kLlamaTasks[] = {{kCausalLm, causal_lm, kLlamaLmReads}, kCausalClassifier};

}  // namespace

constinit const ModelFamily kLlama = {
    .name = "llama",
    .doc = "RMS norm, rotary positions, SwiGLU, grouped queries",
    .reads = kLlamaReads,
    .tasks = kLlamaTasks,
    .publish = [](ModelConfig& config) { config.bias = config.tied_head = false; },
    // SwiGLU has three matrices where others have two: 8/3 of the width costs what 4 of it do
    // there.
    .complete =
        [](ModelConfig& config) {
          if (config.ffn_width == 0 && config.width > 0 && config.width <= kMaxFieldSize)
            config.ffn_width = (8 * config.width + 11) / 12 * 4;
        },
    .find_problems =
        [](const ModelConfig& c, FieldProblems& problems) {
          if (c.head_width > 0 && c.head_width % 2 != 0)
            problems.add(
                {"head-width"},
                text("rotary positions need an even head width; head-width ", "is ", c.head_width));
          if (c.head_width == 0 && c.width % c.heads == 0 && c.head_dim() % 2 != 0)
            problems.add({"width", "heads"},
                         text("rotary positions need an even head width; width ", c.width, " over ",
                              c.heads, " heads gives ", c.head_dim()));
        },
    .layer = {.feed_forward = FeedForward::SwiGlu,
              .norm = NormKind::Rms,
              .rotary = true,
              .bias = false},
};

}  // namespace tessera
