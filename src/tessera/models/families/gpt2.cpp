/// GPT-2 (Radford et al. 2019): pre-norm layers, learned positions, GELU (tanh form), the head tied
/// to the embedding.

#include "tessera/models/causal_lm.h"

namespace tessera {

namespace {

constexpr ReadField kGpt2Reads[] = {
    {"layers"},  {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"},
    {"context"}, {"positions"}, {"vocab-size"}, {"dropout"}, {"attention-dropout"},
    {"bias"},    {"norm-eps"},  {"init-std"}};

constexpr ReadField kGpt2LmReads[] = {
    {"tied-head"}, {"reset-position-ids"}, {"reset-attention-mask"}};

constexpr FamilyTask kGpt2Tasks[] = {{kCausalLm, causal_lm, kGpt2LmReads}, kCausalClassifier};

}  // namespace

extern constinit const ModelFamily kGpt2 = {
    .name = "gpt2",
    .doc = "pre-norm, learned positions, GELU, tied head",
    .reads = kGpt2Reads,
    .tasks = kGpt2Tasks,
    .standard = true,
};

}  // namespace tessera
