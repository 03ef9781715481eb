/// BERT in Megatron-LM's own names and layouts, of its first versions and of Megatron-core.

#include "tessera/pretrained/families/megatron_lm.h"

namespace tessera {

extern const ModelFamily kMegatronBert;

namespace {

constexpr HubName kMegatronLmTypes[] = {
    {"embed.type.weight", "embedding.tokentype_embeddings.weight"}};
constexpr auto kMegatronLmBertBody = joined(kMegatronLmLayers, kMegatronLmFirst, kMegatronLmTypes);
constexpr HubName kMegatronLmBertNames[] = {
    {.ours = "pooler",
     .theirs = "language_model.pooler.dense",
     .heads = TaskHead::PreTraining | TaskHead::SequenceClassification},
    {.ours = "mlm.dense",
     .theirs = "lm_head.dense",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "mlm.norm",
     .theirs = "lm_head.layernorm",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "mlm.bias",
     .theirs = "lm_head.bias",
     .heads = TaskHead::PreTraining | TaskHead::MaskedLm},
    {.ours = "nsp", .theirs = "binary_head", .heads = TaskHead::PreTraining},
};

// The last stage of a pipeline has a copy of the table.
constexpr HubTie kMegatronLmBertTies[] = {
    {"language_model.embedding.word_embeddings.weight", "output_layer.weight"},
    {"language_model.embedding.word_embeddings.weight", "word_embeddings_for_head.weight"}};

constexpr HubKey kMegatronLmBertKeys[] = {
    must_be("bert_binary_head", true, "samples have two parts here"),
    hub_off("untie_embeddings_and_output_weights", "the decoder is the token embedding here"),
    hub_off("group_query_attention", "each head has its key and its value here"),
};
constexpr std::span<const HubKey> kMegatronLmBertBlocks[] = {kMegatronLmKeys, kMegatronLmFirstKeys,
                                                             kMegatronLmBertKeys};

void read_megatron_lm_bert(const HubConfig& from, ModelConfig& to) {
  require_layout(from);
  require_usual_heads(from, to);
  if (is_on(from, "openai_gelu", false))
    from.refuse("openai_gelu", "the head computes GELU by erf here");
  to.activation = is_on(from, "bias_gelu_fusion", true) ? "gelu_new" : "gelu";
}

constexpr HubClass kMegatronLmBertClasses[] = {{TaskHead::PreTraining, "BertModel"}};

}  // namespace

extern constinit const HubFamily kHubMegatronLmBert = megatron_lm_folders({
    .model_type = "megatron-lm-bert",
    .classes = kMegatronLmBertClasses,
    .base_class = "BertModel",
    .family = &kMegatronBert,
    .body = kMegatronLmBertBody,
    .names = kMegatronLmBertNames,
    .ties = kMegatronLmBertTies,
    .keys = kMegatronLmBertBlocks,
    .read = read_megatron_lm_bert,
});

}  // namespace tessera
