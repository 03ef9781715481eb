#include "tessera/pretrained/hub/hub_experts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/expert_layers.h"

namespace tessera {

namespace {

constexpr std::int64_t kMostHubExperts = 1 << 16;
constexpr const char *kChosen = "num_experts_per_tok", *kBalance = "router_aux_loss_coef",
                     *kWithBalance = "output_router_logits", *kNorm = "norm_topk_prob",
                     *kDense = "mlp_only_layers", *kStep = "decoder_sparse_step",
                     *kWidth = "moe_intermediate_size";

/// Layers of which transformers says that they have experts.
void read_sparse_layers(const HubConfig& from, ModelConfig& to) {
  const std::int64_t step = from.has(kStep) ? from.whole(kStep, 1, 1 << 24) : 1;
  std::vector<bool> layers;
  for (std::int64_t i = 0; i < std::min(to.layers, kMaxLayers); ++i)
    layers.push_back((i + 1) % step == 0);
  if (from.has(kDense)) {
    const HubJson& dense = from.json()[kDense];
    if (!dense.is_array()) from.refuse(kDense, "it must be a list of layers");
    for (const HubJson& one : dense) {
      if (!one.is_number_integer() || one < 0 || one >= std::ssize(layers))
        from.refuse(kDense, text("it must be a list of layers, from 0 to ", to.layers - 1));
      layers[one.get<std::size_t>()] = false;
    }
  }
  to.expert_layers = expert_layers_text(layers);
  if (std::ranges::find(layers, true) == layers.end())
    fail(Fault::Data, from.path(), ": ", kStep, " ", step, " and ", kDense,
         " leave no layer with experts; a model without experts is one of another model_type");
}

void write_sparse_layers(const ModelConfig& from, HubJson& to) {
  const ExpertLayers layers(from.expert_layers);
  HubJson dense = HubJson::array();
  for (std::int64_t i = 0; i < from.layers; ++i)
    if (!layers.has(i)) dense.push_back(i);
  to[kDense] = dense;
  to[kStep] = 1;
  to[kWidth] = from.hidden_of_experts();
}

}  // namespace

void read_experts(const HubConfig& from, const HubExperts& keys, ModelConfig& to) {
  for (const std::string_view key :
       {keys.key, std::string_view(kChosen), std::string_view(kNorm)}) {
    if (from.find(key) != nullptr && !from.has(key)) from.refuse(key, "it says nothing");
  }
  const auto whole = [&](std::string_view key, std::int64_t standard) {
    return from.has(key) ? from.whole(key, 1, kMostHubExperts) : standard;
  };
  to.experts = {};
  to.experts.experts =
      whole(keys.key, keys.also.empty() ? keys.experts : whole(keys.also, keys.experts));
  if (from.has(keys.key) && !keys.also.empty() && from.has(keys.also) &&
      whole(keys.also, 0) != to.experts.experts)
    from.refuse(keys.key, text("it is another name of ", keys.also, ", which is ",
                               whole(keys.also, 0), "; write one of them"));
  to.experts.chosen = whole(kChosen, keys.chosen);
  if (to.experts.chosen > to.experts.experts)
    fail(Fault::Data, from.path(), ": ", kChosen, " is ", to.experts.chosen,
         from.has(kChosen) ? "" : ", as the file lacks it", ", and ", keys.key, " is ",
         to.experts.experts, "; a token cannot choose more experts than there are");
  to.experts.pre_softmax = keys.says_norm && !(from.has(kNorm) && from.truth(kNorm));
  const double balance = from.has(kBalance) ? from.number(kBalance, 0, 1e6) : keys.balance;
  if (from.has(kWithBalance) && from.truth(kWithBalance)) to.experts.balance = balance;
  if (keys.width == 0) return;
  to.experts.width = from.has(kWidth) ? from.whole(kWidth, 1, 1 << 24) : keys.width;
  read_sparse_layers(from, to);
}

void write_experts(const ModelConfig& from, const HubExperts& keys, HubJson& to) {
  const ExpertsConfig &own = from.experts, standard;
  require(own.experts > 0, "export: transformers' ", from.family,
          " has experts, and this model has none (num-experts 0); train with num-experts");
  require(keys.shared || own.shared_width == 0, "export: transformers' ", from.family,
          " has no expert that all tokens read, and this model has one "
          "(moe-shared-expert-intermediate-size ",
          own.shared_width, "); train with 0, or family qwen2_moe");
  require(!keys.shared || (own.shared_width > 0 && own.shared_gate), "export: transformers' ",
          from.family, " has a shared expert with a gate; train with ",
          "moe-shared-expert-intermediate-size and moe-shared-expert-gate");
  const ExpertLayers layers(from.expert_layers);
  bool all = true;
  for (std::int64_t i = 0; i < from.layers; ++i) all = all && layers.has(i);
  const std::pair<bool, const char*> others[] = {
      {keys.width == 0 && !all, "moe-layer-freq"},
      {own.score != standard.score, "moe-router-score-function sigmoid"},
      {own.scale != standard.scale, "moe-router-topk-scaling-factor"},
      {own.groups > 0, "moe-router-num-groups"},
      {own.bias, "moe-router-enable-expert-bias"},
      {own.residual, "moe-use-residual"}};
  for (const auto& [is_so, flag] : others)
    require(!is_so, "export: the model has ", flag, ", and transformers' ", from.family,
            " has no such thing; train it without, or keep the checkpoint");
  require(
      keys.says_norm || !from.experts.pre_softmax, "export: transformers' ", from.family,
      " weights the chosen experts by their probabilities among these, and this model among all ",
      "(moe-router-pre-softmax)");
  to[keys.key] = from.experts.experts;
  if (!keys.also.empty()) to[keys.also] = from.experts.experts;
  to[kChosen] = from.experts.chosen;
  if (keys.says_norm) to[kNorm] = !from.experts.pre_softmax;
  if (keys.width > 0) write_sparse_layers(from, to);
  if (keys.width == 0) to["intermediate_size"] = from.hidden_of_experts();
  to[kWithBalance] = from.experts.balance > 0;
  if (from.experts.balance > 0) to[kBalance] = from.experts.balance;
}

}  // namespace tessera
