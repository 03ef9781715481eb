/// Gemma 3 for text as Hugging Face's folders have it.

#include "tessera/pretrained/families/gemma.h"

namespace tessera {

extern const ModelFamily kGemma3Text;

namespace {

constexpr auto kGemma3TextKeys = hub_rotary_keys(gemma_later_sizes(262208, 131072));
constexpr auto kGemma3TextLaterKeys = gemma_later_keys(0);
constexpr HubKey kGemma3TextOwnKeys[] = {
    {.key = "attn_logit_softcapping", .use = HubUse::Own},
    {.key = "sliding_window_pattern", .use = HubUse::Own},
    {.key = "rope_local_base_freq", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kGemma3TextBlocks[] = {kGemma3TextKeys, kGemma3TextLaterKeys,
                                                         kGemma3TextOwnKeys};

void read_gemma3(const HubConfig& from, ModelConfig& to) {
  to.global_every = 6;
  if (from.has("sliding_window_pattern"))
    to.global_every = from.whole("sliding_window_pattern", 2, 1'000'000);
  if (from.has("attn_logit_softcapping"))
    from.refuse("attn_logit_softcapping",
                "transformers computes no cap of scores in Gemma 3; write null");
  read_rotary_of_kinds(from, to);
  read_layer_types(from, to);
}

void write_gemma3(const ModelConfig& from, HubJson& to) {
  write_rotary_of_kinds(from, to);
  write_layer_types(from, to);
}

constexpr HubClass kGemma3TextClasses[] = {
    {TaskHead::CausalLm, "Gemma3ForCausalLM"},
    {TaskHead::SequenceClassification, "Gemma3TextForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubGemma3Text = hub_rotary_family({
    .model_type = "gemma3_text",
    .classes = kGemma3TextClasses,
    .base_class = "Gemma3TextModel",
    .family = &kGemma3Text,
    .keys = kGemma3TextBlocks,
    .harmless = "_sliding_window_pattern",  // written beside layer_types, and not read
    .read = read_gemma3,
    .write = write_gemma3,
});

}  // namespace tessera
