/// DeepSeek-V3 as Hugging Face's folders have it.

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/expert_layers.h"
#include "tessera/pretrained/hub/hub_experts.h"

namespace tessera {

extern const ModelFamily kDeepseekV3;

namespace {

constexpr std::int64_t kMostHubNumbers = 1 << 24;
constexpr HubRotaryStandard kDeepseekV3Standard = {.width = 7168,
                                                   .layers = 61,
                                                   .heads = 128,
                                                   .kv_heads = 0,
                                                   .ffn_width = 18432,
                                                   .vocabulary = 129280,
                                                   .context = 4096};
constexpr auto kDeepseekV3Keys = joined(hub_decoder_keys(kDeepseekV3Standard), kHubTokenDropout);
constexpr const char *kHeads = "num_attention_heads", *kKeyHeads = "num_key_value_heads",
                     *kExperts = "n_routed_experts", *kDense = "first_k_dense_replace",
                     *kShared = "n_shared_experts", *kNorm = "norm_topk_prob", *kGroups = "n_group",
                     *kChosenGroups = "topk_group", *kChosen = "num_experts_per_tok",
                     *kScale = "routed_scaling_factor", *kExpertWidth = "moe_intermediate_size",
                     *kQueryRank = "q_lora_rank";

/// Sizes of attention.
struct LatentKey {
  std::string_view key;
  std::int64_t LatentConfig::*slot;
  std::int64_t standard;
};
constexpr LatentKey kLatentKeys[] = {{"kv_lora_rank", &LatentConfig::kv_rank, 512},
                                     {"qk_rope_head_dim", &LatentConfig::rotary_width, 64},
                                     {"qk_nope_head_dim", &LatentConfig::plain_width, 128},
                                     {"v_head_dim", &LatentConfig::value_width, 128}};

constexpr HubKey kDeepseekV3OwnKeys[] = {
    kHubSilu,
    hub_norm_eps("rms_norm_eps", 1e-6),
    must_be("attention_bias", false, "attention has no biases here"),
    must_be("rope_interleave", true, "channels that turn together lie side by side"),
    must_have_been("moe_layer_freq", std::int64_t{1},
                   "all layers behind the dense ones have experts"),
    {.key = "scoring_func",
     .use = HubUse::Must,
     .standard = "sigmoid",
     .must = "sigmoid",
     .words = "sigmoid",
     .why = "transformers computes no other scores",
     .write = HubWrite::Never},
    {.key = "topk_method",
     .use = HubUse::Must,
     .standard = "noaux_tc",
     .must = "noaux_tc",
     .words = "noaux_tc",
     .why = "experts are chosen with a bias here",
     .write = HubWrite::Never},
    hub_expert_key(kKeyHeads),
    hub_expert_key(kQueryRank, true),
    hub_expert_key(kLatentKeys[0].key, true),
    hub_expert_key(kLatentKeys[1].key, true),
    hub_expert_key(kLatentKeys[2].key, true),
    hub_expert_key(kLatentKeys[3].key, true),
    {.key = kExperts, .use = HubUse::Own, .also = "num_local_experts", .shapes = true},
    hub_expert_key(kShared, true),
    hub_expert_key(kExpertWidth, true),
    hub_expert_key(kDense, true),
    hub_expert_key(kChosen),
    hub_expert_key(kGroups),
    hub_expert_key(kChosenGroups),
    hub_expert_key(kScale),
    hub_expert_key(kNorm),
};
constexpr std::span<const HubKey> kDeepseekV3Blocks[] = {kDeepseekV3Keys, kDeepseekV3OwnKeys};
/// transformers reads none of them: its loss has no part of routers, and the layers that predict
/// further tokens are left out.
constexpr std::string_view kDeepseekV3Harmless =
    "output_router_logits router_aux_loss_coef aux_loss_alpha seq_aux ep_size head_dim qk_head_dim "
    "pretraining_tp num_nextn_predict_layers num_mtp_layers";

bool has_query_rank(const ModelConfig& model) { return model.latent.query_rank > 0; }
bool lacks_query_rank(const ModelConfig& model) { return !has_query_rank(model); }

constexpr HubName kDeepseekV3OwnNames[] = {
    {"embed.token.weight", "model.embed_tokens.weight"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    kHubScoreNames[0],
    kHubScoreNames[1],
    {.ours = "layers.#.attn.q.weight",
     .theirs = "model.layers.#.self_attn.q_proj.weight",
     .rows = HubRows::LatentQueries,
     .is_in = lacks_query_rank},
    {.ours = "layers.#.attn.q_a.weight",
     .theirs = "model.layers.#.self_attn.q_a_proj.weight",
     .is_in = has_query_rank},
    {.ours = "layers.#.attn.q_a_norm.weight",
     .theirs = "model.layers.#.self_attn.q_a_layernorm.weight",
     .is_in = has_query_rank},
    {.ours = "layers.#.attn.q_b.weight",
     .theirs = "model.layers.#.self_attn.q_b_proj.weight",
     .rows = HubRows::LatentQueries,
     .is_in = has_query_rank},
    {"layers.#.attn.kv_a.weight", "model.layers.#.self_attn.kv_a_proj_with_mqa.weight",
     HubRows::LatentKeys},
    {"layers.#.attn.kv_a_norm.weight", "model.layers.#.self_attn.kv_a_layernorm.weight"},
    {"layers.#.attn.kv_b.weight", "model.layers.#.self_attn.kv_b_proj.weight"},
    {.ours = "layers.#.mlp.router.weight",
     .theirs = "model.layers.#.mlp.gate.weight",
     .is_in = has_experts},
    {.ours = "layers.#.mlp.router.expert_bias",
     .theirs = "model.layers.#.mlp.gate.e_score_correction_bias",
     .is_in = has_experts},
    {.ours = "layers.#.mlp.shared.gate.weight",
     .theirs = "model.layers.#.mlp.shared_experts.gate_proj.weight",
     .is_in = has_experts},
    {.ours = "layers.#.mlp.shared.up.weight",
     .theirs = "model.layers.#.mlp.shared_experts.up_proj.weight",
     .is_in = has_experts},
    {.ours = "layers.#.mlp.shared.down.weight",
     .theirs = "model.layers.#.mlp.shared_experts.down_proj.weight",
     .is_in = has_experts},
};
constexpr auto kDeepseekV3Names =
    joined(kDeepseekV3OwnNames, kHubOutNames, kHubGatedNames,
           hub_expert_names("model.layers.#.mlp.experts.@.gate_proj.weight",
                            "model.layers.#.mlp.experts.@.up_proj.weight",
                            "model.layers.#.mlp.experts.@.down_proj.weight"));

constexpr HubClass kDeepseekV3Classes[] = {
    {TaskHead::CausalLm, "DeepseekV3ForCausalLM"},
    {TaskHead::SequenceClassification, "DeepseekV3ForSequenceClassification"},
    {TaskHead::TokenClassification, "DeepseekV3ForTokenClassification"}};

void read_groups(const HubConfig& from, ModelConfig& to) {
  const auto whole = [&](const char* key, std::int64_t standard) {
    return from.has(key) ? from.whole(key, 1, kMostHubNumbers) : standard;
  };
  to.experts.groups = whole(kGroups, 8);
  to.experts.chosen_groups = whole(kChosenGroups, 4);
  // All groups are chosen.
  if (to.experts.groups == to.experts.chosen_groups)
    to.experts.groups = to.experts.chosen_groups = 0;
  const ExpertsConfig& own = to.experts;
  if (own.chosen > own.experts)
    fail(Fault::Data, from.path(), ": ", kChosen, " is ", own.chosen, " and ", kExperts, " ",
         own.experts, "; a token cannot choose more experts than there are");
  if (own.groups == 0) return;
  if (own.experts % own.groups != 0 || own.chosen_groups > own.groups ||
      own.chosen != 2 * own.chosen_groups || own.experts < 2 * own.groups)
    fail(Fault::Data, from.path(), ": ", kGroups, " is ", own.groups, ", ", kChosenGroups, " ",
         own.chosen_groups, ", ", kChosen, " ", own.chosen, " and ", kExperts, " ", own.experts,
         "; groups are equal ones, judged by their two best experts, of which a token chooses two "
         "in each chosen group: ",
         kChosen, " must be twice ", kChosenGroups);
}

/// The file does not say how fast biases change, and transformers leaves them as they are.
void read_deepseek_v3(const HubConfig& from, ModelConfig& to) {
  read_rotary(from, to);
  for (const std::string_view key :
       {std::string_view(kExperts), std::string_view(kShared), std::string_view(kExpertWidth),
        std::string_view(kDense), std::string_view(kChosen), std::string_view(kGroups),
        std::string_view(kChosenGroups), std::string_view(kScale), std::string_view(kNorm),
        kLatentKeys[0].key, kLatentKeys[1].key, kLatentKeys[2].key, kLatentKeys[3].key}) {
    if (from.find(key) != nullptr && !from.has(key)) from.refuse(key, "it says nothing");
  }
  const auto whole = [&](std::string_view key, std::int64_t standard) {
    return from.has(key) ? from.whole(key, 1, kMostHubNumbers) : standard;
  };
  const std::int64_t key_heads = from.find(kKeyHeads) == nullptr ? 128 : whole(kKeyHeads, to.heads);
  if (key_heads != to.heads)
    fail(Fault::Data, from.path(), ": ", kKeyHeads, " is ", key_heads,
         from.has(kKeyHeads) ? "" : ", as the file lacks it", ", and ", kHeads, " ", to.heads,
         "; each head has keys and values of its own, so they must be equal");
  for (const LatentKey& each : kLatentKeys) to.latent.*each.slot = whole(each.key, each.standard);
  to.latent.query_rank = from.find(kQueryRank) == nullptr ? 1536 : whole(kQueryRank, 0);
  to.experts = {.experts = whole(kExperts, whole("num_local_experts", 256)),
                .width = whole(kExpertWidth, 2048),
                .chosen = whole(kChosen, 8),
                .score = RouterScore::Sigmoid,
                .pre_softmax = from.has(kNorm) && !from.truth(kNorm),
                .scale = from.has(kScale) ? from.number(kScale, 0, 1e6) : 2.5,
                .bias = true,
                .bias_rate = 0};
  read_groups(from, to);
  to.experts.shared_width = whole(kShared, 1) * to.experts.width;
  const std::int64_t dense = from.has(kDense) ? from.whole(kDense, 0, kMostHubNumbers) : 3;
  if (dense >= to.layers)
    fail(Fault::Data, from.path(), ": ", kDense, " is ", dense,
         from.has(kDense) ? "" : ", as the file lacks it", ", of ", to.layers,
         " layers (num_hidden_layers), so that none has experts; some must");
  std::vector<bool> layers(static_cast<std::size_t>(std::min(to.layers, kMaxLayers)), true);
  std::fill_n(layers.begin(), std::min<std::int64_t>(dense, std::ssize(layers)), false);
  to.expert_layers = expert_layers_text(layers);
}

/// How many layers, from the first one on, have no experts.
std::int64_t first_dense(const ModelConfig& from) {
  const ExpertLayers layers(from.expert_layers);
  std::int64_t out = 0;
  while (out < from.layers && !layers.has(out)) ++out;
  for (std::int64_t i = out; i < from.layers; ++i)
    require(layers.has(i), "export: in transformers' ", from.family,
            " all layers behind the first ones without experts have some, and layer ", i,
            " has none (moe-layer-freq ", from.expert_layers, "); keep the checkpoint");
  return out;
}

void write_deepseek_v3(const ModelConfig& from, HubJson& to) {
  const ExpertsConfig& own = from.experts;
  const std::int64_t width = from.hidden_of_experts();
  const auto needs = [&](bool is_so, std::string_view what) {
    require(is_so, "export: transformers' ", from.family, " has ", what, "; train it so");
  };
  needs(own.experts > 0, "experts, and this model none (num-experts 0)");
  needs(own.score == RouterScore::Sigmoid && own.bias,
        "moe-router-score-function sigmoid and moe-router-enable-expert-bias");
  needs(!own.residual, "no residual network (moe-use-residual)");
  needs(own.shared_width > 0 && own.shared_width % width == 0 && !own.shared_gate,
        text("shared experts without a gate, as wide as ", width,
             " or several of that (moe-shared-expert-intermediate-size, and this model has ",
             own.shared_width, ")"));
  needs(own.groups == 0 || own.chosen == 2 * own.chosen_groups,
        "groups that are judged by two experts: moe-router-topk twice moe-router-group-topk");
  write_rotary(from, to);
  to[kKeyHeads] = from.heads;
  for (const LatentKey& each : kLatentKeys) to[each.key] = from.latent.*each.slot;
  to[kQueryRank] = from.latent.query_rank > 0 ? HubJson(from.latent.query_rank) : HubJson(nullptr);
  to[kExperts] = own.experts;
  to[kShared] = own.shared_width / width;
  to[kExpertWidth] = width;
  to[kDense] = first_dense(from);
  to[kChosen] = own.chosen;
  to[kGroups] = std::max<std::int64_t>(own.groups, 1);
  to[kChosenGroups] = std::max<std::int64_t>(own.chosen_groups, 1);
  to[kScale] = own.scale;
  to[kNorm] = !own.pre_softmax;
}

}  // namespace

extern constinit const HubFamily kHubDeepseekV3 = hub_rotary_family({
    .model_type = "deepseek_v3",
    .classes = kDeepseekV3Classes,
    .base_class = "DeepseekV3Model",
    .family = &kDeepseekV3,
    .names = kDeepseekV3Names,
    .keys = kDeepseekV3Blocks,
    .harmless = kDeepseekV3Harmless,
    .read = read_deepseek_v3,
    .write = write_deepseek_v3,
});

}  // namespace tessera
