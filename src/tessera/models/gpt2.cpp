/// GPT-2 (Radford et al. 2019): pre-norm layers, learned positions, GELU (tanh form), the head tied
/// to the embedding.

#include "tessera/models/causal_lm.h"
#include "tessera/models/layer.h"

namespace tessera {

namespace {

Value gpt2_logits(const ModelConfig& config, Value ids, const Pass& pass) {
  return causal_transformer(config, layer_of(config), ids, pass);
}

constexpr ReadField kGpt2Reads[] = {
    {"layers"},  {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"},
    {"context"}, {"positions"}, {"vocab-size"}, {"dropout"}, {"attention-dropout"},
    {"bias"},    {"norm-eps"},  {"init-std"}};

constexpr ReadField kGpt2LmReads[] = {
    {"tied-head"}, {"reset-position-ids"}, {"reset-attention-mask"}};

constexpr FamilyTask kGpt2Tasks[] = {
    {kCausalLm, "the next token from those before it",
     [](const ModelConfig& config) { return causal_lm(config, gpt2_logits); }, kGpt2LmReads},
    causal_classifier(
        [](const ModelConfig& config) { return causal_classification(config, layer_of(config)); })};

}  // namespace

constinit const ModelFamily kGpt2 = {
    .name = "gpt2",
    .doc = "pre-norm, learned positions, GELU, tied head",
    .reads = kGpt2Reads,
    .tasks = kGpt2Tasks,
};

}  // namespace tessera
