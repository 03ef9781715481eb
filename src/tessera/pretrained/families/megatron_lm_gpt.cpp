/// GPT in Megatron-LM's own names and layouts, of its first versions and of Megatron-core.

#include "tessera/pretrained/families/megatron_lm.h"

#include "tessera/base/text.h"

namespace tessera {

extern const ModelFamily kGpt2;

namespace {

constexpr auto kMegatronLmGptBody = joined(kMegatronLmLayers, kMegatronLmFirst);

constexpr std::span<const HubKey> kMegatronLmGptBlocks[] = {kMegatronLmKeys, kMegatronLmFirstKeys,
                                                            kMegatronLmGptKeys};

void read_megatron_lm_gpt2(const HubConfig& from, ModelConfig& to) {
  read_megatron_lm_gpt(from, to);
  require_usual_heads(from, to);
  if (!is_on(from, "bias_gelu_fusion", true) && !is_on(from, "openai_gelu", false))
    from.refuse("bias_gelu_fusion",
                "without it Megatron-LM computes GELU by erf, and a GPT here by tanh; set it to "
                "true to take that");
}

}  // namespace

bool is_on(const HubConfig& from, std::string_view key, bool standard) {
  return from.find(key) == nullptr ? standard : from.truth(key);
}

void require_layout(const HubConfig& from) {
  constexpr double kLeast = 2, kMost = 3;  // in which rows of queries, keys and values are by heads
  if (from.has("checkpoint_version") && from.number("checkpoint_version", 0, 100) < kLeast)
    from.refuse("checkpoint_version",
                "rows of queries, keys and values of versions below 2 have another order; convert "
                "the checkpoint with tools/convert_megatron.py, which puts them right");
  if (from.has("checkpoint_version") && from.number("checkpoint_version", 0, 100) > kMost)
    from.refuse("checkpoint_version", "known are versions up to 3");
}

void require_usual_heads(const HubConfig& from, const ModelConfig& model) {
  if (from.has("kv_channels") && from.whole("kv_channels", 1, 1'000'000) != model.head_dim())
    from.refuse("kv_channels", text("heads are hidden_size / num_attention_heads, ",
                                    model.head_dim(), ", wide here"));
}

void read_megatron_lm_gpt(const HubConfig& from, ModelConfig& to) {
  require_layout(from);
  to.tied_head = !is_on(from, "untie_embeddings_and_output_weights", false);
  const bool grouped = is_on(from, "group_query_attention", false);
  if (grouped && !from.has("num_query_groups"))
    from.refuse("group_query_attention", "num_query_groups must say how many groups there are");
  to.kv_heads = grouped ? from.whole("num_query_groups", 1, 1'000'000) : 0;
}

extern constinit const HubFamily kHubMegatronLmGpt = megatron_lm_folders({
    .model_type = "megatron-lm-gpt",
    .classes = kMegatronLmGptClasses,
    .base_class = "GPTModel",
    .family = &kGpt2,
    .body = kMegatronLmGptBody,
    .names = kMegatronLmGptNames,
    .ties = kMegatronLmGptTies,
    .keys = kMegatronLmGptBlocks,
    .read = read_megatron_lm_gpt2,
    .grouped_queries = true,
    .ends_by_padding = true,
});

}  // namespace tessera
