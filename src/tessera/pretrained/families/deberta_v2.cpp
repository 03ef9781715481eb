/// DeBERTa of versions 2 and 3 as Hugging Face's folders have it.

#include <algorithm>

#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

extern const ModelFamily kDebertaV2;

namespace {

constexpr HubName kDebertaV2First[] = {
    {"embed.distance.weight", "encoder.rel_embeddings.weight"},
    {"embed.distance.norm", "encoder.LayerNorm"},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.query_proj", HubRows::Queries},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.key_proj", HubRows::Keys},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.value_proj", HubRows::Values},
};
constexpr auto kDebertaV2Body = joined(kDebertaV2First, kHubEncoderRest);

constexpr HubName kDebertaV2Pooler[] = {
    {.ours = "pooler", .theirs = "pooler.dense", .heads = kHubTextLabels}};
constexpr auto kDebertaV2Names =
    joined(kDebertaV2Pooler, hub_prediction_names(TaskHead::MaskedLm), kHubLabelHeads);

constexpr HubTie kDebertaV2Ties[] = {
    {"deberta.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", false,
     TaskHead::MaskedLm},
    {"cls.predictions.bias", "cls.predictions.decoder.bias", false, TaskHead::MaskedLm}};

// Numbers of positions, a table of positions that is not used, heads of pre-training.
constexpr std::string_view kDebertaV2Unread[] = {"embeddings.position_ids",
                                                 "embeddings.position_embeddings.weight",
                                                 "lm_predictions.*", "mask_predictions.*"};

constexpr HubKey kDebertaV2Keys[] = {
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 1536},
    {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = 24},
    {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = 24},
    {.key = "intermediate_size", .slot = &ModelConfig::ffn_width, .standard = 6144},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 128100},
    // Distances have no end.
    {.key = "max_position_embeddings",
     .slot = &ModelConfig::context,
     .standard = 512,
     .write = HubWrite::IfMissing},
    {.key = "hidden_act", .use = HubUse::Must, .standard = "gelu", .must = "gelu", .words = "gelu"},
    {.key = "pooler_hidden_act",
     .use = HubUse::Must,
     .standard = "gelu",
     .must = "gelu",
     .words = "gelu"},
    hub_norm_eps("layer_norm_eps", 1e-7),
    hub_init_std("initializer_range", 0.02),
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.1),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.1),
    {.key = "cls_dropout",
     .use = HubUse::Rate,
     .slot = &ModelConfig::classifier_dropout,
     .standard = -1.0,
     .null = -1.0,
     .heads = kHubTextLabels},
    must_be("pooler_dropout", 0.0, "what the pooler reads has no dropout here"),
    must_be("type_vocab_size", 0, "tokens have no types here"),
    must_be("tie_word_embeddings", true, "the decoder is the token embedding here"),
    must_be("legacy", true, "masked tokens are judged by cls.predictions here"),
    {.key = "relative_attention",
     .use = HubUse::Must,
     .standard = false,
     .must = true,
     .why = "distances between tokens add to scores here"},
    {.key = "position_biased_input",
     .use = HubUse::Must,
     .standard = true,
     .must = false,
     .why = "there is no table of positions here"},
    {.key = "share_att_key",
     .use = HubUse::Must,
     .standard = false,
     .must = true,
     .why = "distances have the projections of tokens here"},
    {.key = "norm_rel_ebd",
     .use = HubUse::Must,
     .standard = "none",
     .must = "layer_norm",
     .words = "layer_norm"},
    {.key = "conv_kernel_size",
     .use = HubUse::Must,
     .standard = 0,
     .must = 0,
     .why = "there is no convolution behind the first layer here",
     .write = HubWrite::Never},
    {.key = "position_buckets", .use = HubUse::Own, .shapes = true},
    {.key = "max_relative_positions", .use = HubUse::Own},
    {.key = "pos_att_type", .use = HubUse::Own},
    {.key = "pooler_hidden_size", .use = HubUse::Own},
    {.key = "embedding_size", .use = HubUse::Own},
    {.key = "attention_head_size", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kDebertaV2Blocks[] = {kDebertaV2Keys};
// Of the convolution, and of a program that trained the first files.
constexpr std::string_view kDebertaV2Harmless = "conv_act conv_groups padding_idx z_steps";

constexpr std::int64_t kMostDistance = 1'000'000'000;

/// "c2p|p2c", in any order, or a list of the two.
void judge_kinds_of_scores(const HubConfig& from) {
  std::vector<std::string> kinds;
  if (const HubJson* const given = from.find("pos_att_type"); given != nullptr) {
    if (given->is_string()) kinds = split(given->get<std::string>(), '|');
    if (given->is_array()) {
      for (const HubJson& each : *given)
        kinds.push_back(each.is_string() ? each.get<std::string>() : "");
    }
  }
  std::ranges::sort(kinds);
  if (kinds != std::vector<std::string>{"c2p", "p2c"})
    from.refuse("pos_att_type", "it must be c2p and p2c: tokens and distances add both ways here");
}

void read_deberta_v2(const HubConfig& from, ModelConfig& to) {
  judge_kinds_of_scores(from);
  const auto must_be_size = [&](std::string_view key, std::int64_t size, const char* of) {
    if (from.has(key) && from.whole(key, 1, kMostDistance) != size)
      from.refuse(key, text("it must be ", size, ", ", of));
  };
  must_be_size("pooler_hidden_size", to.width, "as hidden_size");
  must_be_size("embedding_size", to.width, "as hidden_size");
  must_be_size("attention_head_size", to.heads > 0 ? to.width / to.heads : 0,
               "as hidden_size / num_attention_heads");
  if (!from.has("position_buckets"))
    from.refuse("position_buckets", "far distances share kinds here; give so many of each side");
  to.distance_kinds = from.whole("position_buckets", 4, kMaxDistanceKinds);
  if (to.distance_kinds % 2 != 0) from.refuse("position_buckets", "it must be even");
  const std::int64_t far = from.has("max_relative_positions")
                               ? from.whole("max_relative_positions", -1, kMostDistance)
                               : -1;
  to.far_distance = far < 1 ? to.context : far;
  const std::int64_t least = to.distance_kinds / 2 + 2;
  if (to.far_distance < least || to.far_distance > kMaxContext)
    from.refuse(far < 1 ? "max_position_embeddings" : "max_relative_positions",
                text("it is the farthest distance, which must be from ", least,
                     " (position_buckets ", to.distance_kinds, " / 2 + 2) to ", kMaxContext));
}

void write_deberta_v2(const ModelConfig& from, HubJson& to) {
  to["position_buckets"] = from.distance_kinds;
  to["max_relative_positions"] =
      to["max_position_embeddings"] == from.far_distance ? -1 : from.far_distance;
  to["pos_att_type"] = {"p2c", "c2p"};
  to["pooler_hidden_size"] = from.width;
}

constexpr HubClass kDebertaV2Classes[] = {
    {TaskHead::MaskedLm, "DebertaV2ForMaskedLM"},
    {TaskHead::SequenceClassification, "DebertaV2ForSequenceClassification"},
    {TaskHead::TokenClassification, "DebertaV2ForTokenClassification"},
    {TaskHead::QuestionAnswering, "DebertaV2ForQuestionAnswering"},
    {TaskHead::MultipleChoice, "DebertaV2ForMultipleChoice"}};

}  // namespace

extern constinit const HubFamily kHubDebertaV2 = {
    .model_type = "deberta-v2",
    .classes = kDebertaV2Classes,
    .base_class = "DebertaV2Model",
    .family = &kDebertaV2,
    .prefix = "deberta.",
    .body = kDebertaV2Body,
    .names = kDebertaV2Names,
    .ties = kDebertaV2Ties,
    .unread = kDebertaV2Unread,
    .keys = kDebertaV2Blocks,
    .harmless = kDebertaV2Harmless,
    .read = read_deberta_v2,
    .write = write_deberta_v2,
};

}  // namespace tessera
