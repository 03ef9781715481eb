/// ModernBERT (Warner et al. 2024, arXiv 2412.13663): an encoder of pre-norm layers with rotary
/// positions and GeGLU, without biases, most of whose layers see what is near alone.

#include "tessera/models/masked_lm.h"
#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr MaskedModel kModernbertModel = {
    .types = 0,
    .positions = false,
    .feed_forward = FeedForward::GeGluErf,
    .pre_norm = true,
    .bare_first = true,
    .may_pool = true,
    .text_head = {.dense = "head.dense",
                  .norm = "head.norm",
                  .activation = [](Value x) { return gelu(x, GeluForm::Erf); },
                  .bias = false,
                  .on_tokens = true},
    .answers = "classifier",
    .drops_before_answers = true,
};

constexpr ReadField kModernbertOwnReads[] = {{"ffn-width"},
                                             {"attention-bias"},
                                             {"ffn-bias"},
                                             {"window", "as many on the other side too"},
                                             {"global-every", "the first of each so many"},
                                             {"local-rope-base"}};
constexpr auto kModernbertReads = joined(kDecoderReads, kRopeReads, kModernbertOwnReads);

}  // namespace

extern constinit const ModelFamily kModernbert = {
    .name = "modernbert",
    .doc = "an encoder with rotary positions, GeGLU, windows, no biases",
    .reads = kModernbertReads,
    .tasks = kOnePartTasks<kModernbertModel>,
    .publish =
        [](ModelConfig& config) {
          config.rope_base = 160'000;
          config.local_rope_base = 10'000;
          config.window = 65;
          config.global_every = 3;
        },
    .find_problems = find_rotary_problems,
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
    .layer = {.bias = false, .rotary = true},
    .first_sees_all = true,
};

}  // namespace tessera
