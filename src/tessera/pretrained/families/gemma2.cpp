/// Gemma 2 as Hugging Face's folders have it.

#include "tessera/pretrained/families/gemma.h"

namespace tessera {

extern const ModelFamily kGemma2;

namespace {

constexpr auto kGemma2Keys = hub_rotary_keys(gemma_later_sizes(256000, 8192));
constexpr auto kGemma2LaterKeys = gemma_later_keys(30);
constexpr HubKey kGemma2OwnKeys[] = {{.key = "attn_logit_softcapping",
                                      .slot = &ModelConfig::score_cap,
                                      .standard = 50.0,
                                      .null = 0.0,
                                      .least = 0}};
constexpr std::span<const HubKey> kGemma2Blocks[] = {kGemma2Keys, kGemma2LaterKeys, kGemma2OwnKeys};

void read_gemma2(const HubConfig& from, ModelConfig& to) {
  to.global_every = 2;
  read_rotary_in_layers(from, to);
}

constexpr HubClass kGemma2Classes[] = {
    {TaskHead::CausalLm, "Gemma2ForCausalLM"},
    {TaskHead::SequenceClassification, "Gemma2ForSequenceClassification"},
    {TaskHead::TokenClassification, "Gemma2ForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubGemma2 = hub_rotary_family({
    .model_type = "gemma2",
    .classes = kGemma2Classes,
    .base_class = "Gemma2Model",
    .family = &kGemma2,
    .keys = kGemma2Blocks,
    .read = read_gemma2,
    .write = write_rotary_in_layers,
});

}  // namespace tessera
