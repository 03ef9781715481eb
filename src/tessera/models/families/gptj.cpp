/// GPT-J (Wang and Komatsuzaki 2021): as Phi, without biases in attention.

#include "tessera/models/rotary_lm.h"

namespace tessera {

extern constinit const ModelFamily kGptj = {
    .name = "gptj",
    .doc = "parallel parts behind one norm, rotary positions of a share of channels",
    .reads = kPartialReads,
    .tasks = kRotaryTasks,
    .publish =
        [](ModelConfig& config) {
          config.tied_head = false;
          config.rotary_share = 0.25;
        },
    .find_problems = find_rotary_problems,
    .layer = {.parallel = true,
              .one_norm = true,
              .bias = false,
              .ffn_bias = true,
              .norm_bias = true,
              .rotary = true},
    .head_bias = true,
};

}  // namespace tessera
