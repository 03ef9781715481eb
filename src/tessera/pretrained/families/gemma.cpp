/// Gemma as Hugging Face's folders have it.

#include "tessera/pretrained/families/gemma.h"

namespace tessera {

extern const ModelFamily kGemma;

namespace {

constexpr auto kGemmaKeys = hub_rotary_keys({.width = 3072,
                                             .layers = 28,
                                             .heads = 16,
                                             .kv_heads = 16,
                                             .ffn_width = 24576,
                                             .vocabulary = 256000,
                                             .context = 8192,
                                             .tied = true});
// The first files say gelu, by which transformers too means the other, and repeat it.
constexpr std::string_view kGemmaGelu = "gelu_pytorch_tanh gelu";
constexpr HubKey kGemmaOwnKeys[] = {
    {.key = "hidden_act",
     .use = HubUse::Must,
     .standard = "gelu_pytorch_tanh",
     .must = "gelu_pytorch_tanh",
     .words = kGemmaGelu},
    {.key = "hidden_activation",
     .use = HubUse::Must,
     .standard = "gelu_pytorch_tanh",
     .null = "gelu_pytorch_tanh",
     .must = "gelu_pytorch_tanh",
     .words = kGemmaGelu,
     .write = HubWrite::Never},
};
constexpr std::span<const HubKey> kGemmaBlocks[] = {kGemmaKeys, kGemmaShared, kGemmaOwnKeys};

constexpr HubClass kGemmaClasses[] = {
    {TaskHead::CausalLm, "GemmaForCausalLM"},
    {TaskHead::SequenceClassification, "GemmaForSequenceClassification"},
    {TaskHead::TokenClassification, "GemmaForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubGemma = hub_rotary_family({
    .model_type = "gemma",
    .classes = kGemmaClasses,
    .base_class = "GemmaModel",
    .family = &kGemma,
    .keys = kGemmaBlocks,
    .read = read_rotary,
    .write = write_rotary,
});

}  // namespace tessera
