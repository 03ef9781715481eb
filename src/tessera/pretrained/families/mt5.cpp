/// mT5 as Hugging Face's folders have it: MT5ForConditionalGeneration.

#include "tessera/base/error.h"
#include "tessera/pretrained/families/t5.h"

namespace tessera {

extern const ModelFamily kMt5;

namespace {

constexpr auto kMt5Keys = t5_keys(
    {.ffn_width = 1024, .layers = 8, .heads = 6, .vocabulary = 250112, .activation = kT5GatedGelu});
constexpr std::span<const HubKey> kMt5Blocks[] = {kMt5Keys};

void write_mt5(const ModelConfig& from, HubJson& to) {
  require(tied_logit_scale(from) == 1, "export: logit-scale is ", tied_logit_scale(from),
          "; transformers' mT5 supports only 1");
  // Version 5 does not read it.
  to["tie_word_embeddings"] = from.tied_head;
  write_t5_version(from, to);
}

constexpr HubClass kMt5Classes[] = {
    {TaskHead::Seq2SeqLm, "MT5ForConditionalGeneration"},
    {TaskHead::SequenceClassification, "MT5ForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubMt5 = t5_folders({
    .model_type = "mt5",
    .classes = kMt5Classes,
    .base_class = "MT5Model",
    .family = &kMt5,
    .keys = kMt5Blocks,
    .harmless = "tie_word_embeddings",
    .read =
        [](const HubConfig& from, ModelConfig& to) {
          // No number depends on it: weights say whether the head is the table.
          if (from.has("tie_word_embeddings")) from.truth("tie_word_embeddings");
          read_t5_version(from, 1, 0, to);
        },
    .write = write_mt5,
});

}  // namespace tessera
