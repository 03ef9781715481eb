/// Marian as Hugging Face's folders have it: MarianMTModel, the models of Helsinki-NLP.

#include "tessera/base/text.h"
#include "tessera/pretrained/families/bart.h"

namespace tessera {

extern const ModelFamily kMarian;

namespace {

bool has_one_table(const ModelConfig& model) { return model.shared_embedding; }
bool has_two_tables(const ModelConfig& model) { return !model.shared_embedding; }

constexpr HubName kMarianTables[] = {
    {.ours = "embed.token.weight", .theirs = "model.shared.weight", .is_in = has_one_table},
    {.ours = "embed.token.weight",
     .theirs = "model.encoder.embed_tokens.weight",
     .is_in = has_two_tables},
    {.ours = "embed_target.token.weight",
     .theirs = "model.decoder.embed_tokens.weight",
     .is_in = has_two_tables},
};
constexpr auto kMarianNames = joined(kMarianTables, kBartLogitBias);

constexpr HubTie kMarianTies[] = {
    {.theirs = "model.shared.weight",
     .also = "model.encoder.embed_tokens.weight",
     .is_in = has_one_table},
    {.theirs = "model.shared.weight",
     .also = "model.decoder.embed_tokens.weight",
     .is_in = has_one_table},
    {.theirs = "model.shared.weight", .also = "lm_head.weight", .is_in = has_one_table},
    {.theirs = "model.decoder.embed_tokens.weight",
     .also = "lm_head.weight",
     .is_in = has_two_tables},
};

constexpr HubKey kMarianKeys[] = {
    {.key = "share_encoder_decoder_embeddings",
     .slot = &ModelConfig::shared_embedding,
     .standard = true,
     .shapes = true},
    {.key = "decoder_vocab_size", .use = HubUse::Own, .shapes = true},
};
constexpr std::span<const HubKey> kMarianBlocks[] = {kBartKeys, kBartFormKeys<kMarianForm, 58101>,
                                                     kMarianKeys};

void read_marian(const HubConfig& from, ModelConfig& to) {
  constexpr const char* kTargets = "decoder_vocab_size";
  if (from.has(kTargets) && from.whole(kTargets, 0, 1'000'000'000) != to.vocabulary &&
      from.whole(kTargets, 0, 1'000'000'000) != 0)
    from.refuse(kTargets,
                text("sources and targets have one vocabulary here, vocab_size ", to.vocabulary));
  read_bart_with_sines<58100, 58100, 0>(from, to);
}

constexpr HubClass kMarianClasses[] = {{TaskHead::Seq2SeqLm, "MarianMTModel"}};

}  // namespace

extern constinit const HubFamily kHubMarian = bart_folders({
    .model_type = "marian",
    .classes = kMarianClasses,
    .base_class = "MarianModel",
    .family = &kMarian,
    .names = kMarianNames,
    .ties = kMarianTies,
    .constants = kBartSines<false>,
    .keys = kMarianBlocks,
    .read = read_marian,
    .write =
        [](const ModelConfig& from, HubJson& to) {
          write_bart_stacks(from, to);
          to["decoder_vocab_size"] = from.vocabulary;
        },
});

}  // namespace tessera
