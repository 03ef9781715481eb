/// GPT in Megatron-LM's own names and layouts, of its first versions and of Megatron-core.

#include "tessera/pretrained/families/megatron_lm.h"

#include "tessera/base/text.h"

namespace tessera {

extern const ModelFamily kGpt2;

namespace {

constexpr HubName kMegatronLmGptNames[] = {
    {.ours = "head.weight", .theirs = "output_layer.weight", .heads = TaskHead::CausalLm}};
constexpr auto kMegatronLmGptBody = joined(kMegatronLmLayers, kMegatronLmFirst);

// The last stage of a pipeline has a copy of the table.
constexpr HubTie kMegatronLmGptTies[] = {
    {"language_model.embedding.word_embeddings.weight", "output_layer.weight", true,
     TaskHead::CausalLm},
    {"language_model.embedding.word_embeddings.weight", "word_embeddings_for_head.weight"}};

constexpr HubKey kMegatronLmGptKeys[] = {
    {.key = "untie_embeddings_and_output_weights", .use = HubUse::Own, .shapes = true},
    {.key = "group_query_attention", .use = HubUse::Own, .shapes = true},
    {.key = "num_query_groups", .use = HubUse::Own, .shapes = true},
};
constexpr std::span<const HubKey> kMegatronLmGptBlocks[] = {kMegatronLmKeys, kMegatronLmFirstKeys,
                                                            kMegatronLmGptKeys};

void read_megatron_lm_gpt(const HubConfig& from, ModelConfig& to) {
  read_megatron_lm(from, to);
  if (!is_on(from, "bias_gelu_fusion", true) && !is_on(from, "openai_gelu", false))
    from.refuse("bias_gelu_fusion",
                "without it Megatron-LM computes GELU by erf, and a GPT here "
                "by tanh; set it to true to take that");
  to.tied_head = !is_on(from, "untie_embeddings_and_output_weights", false);
  if (is_on(from, "group_query_attention", false) && !from.has("num_query_groups"))
    from.refuse("group_query_attention", "num_query_groups must say how many groups there are");
  to.kv_heads = is_on(from, "group_query_attention", false)
                    ? from.whole("num_query_groups", 1, 1'000'000)
                    : 0;
}

void write_megatron_lm_gpt(const ModelConfig& from, HubJson& to) {
  to["untie_embeddings_and_output_weights"] = !from.tied_head;
  to["group_query_attention"] = from.kv_heads > 0;
  to["num_query_groups"] = from.groups();
}

constexpr HubClass kMegatronLmGptClasses[] = {{TaskHead::CausalLm, "GPTModel"}};

}  // namespace

bool is_on(const HubConfig& from, std::string_view key, bool standard) {
  return from.find(key) == nullptr ? standard : from.truth(key);
}

void read_megatron_lm(const HubConfig& from, const ModelConfig& to) {
  constexpr double kLeast = 2, kMost = 3;  // in which rows of queries, keys and values are by heads
  if (from.has("checkpoint_version") && from.number("checkpoint_version", 0, 100) < kLeast)
    from.refuse("checkpoint_version",
                "rows of queries, keys and values of versions below 2 have another order; convert "
                "the checkpoint with tools/convert_megatron.py, which puts them right");
  if (from.has("checkpoint_version") && from.number("checkpoint_version", 0, 100) > kMost)
    from.refuse("checkpoint_version", "known are versions up to 3");
  if (from.has("kv_channels") && from.whole("kv_channels", 1, 1'000'000) != to.head_dim())
    from.refuse("kv_channels", text("heads are hidden_size / num_attention_heads, ", to.head_dim(),
                                    ", wide here"));
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
    .read = read_megatron_lm_gpt,
    .write = write_megatron_lm_gpt,
    .grouped_queries = true,
    .ends_by_padding = true,
});

}  // namespace tessera
