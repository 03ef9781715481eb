#include "tessera/pretrained/hub/hub_experts.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::int64_t kMostHubExperts = 1 << 16;
constexpr const char *kChosen = "num_experts_per_tok", *kBalance = "router_aux_loss_coef",
                     *kWithBalance = "output_router_logits", *kNorm = "norm_topk_prob",
                     *kDense = "mlp_only_layers";

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
  if (from.has(kDense) && !from.json()[kDense].empty())
    from.refuse(kDense, "all layers have experts here, so it must be an empty list");
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
  const std::pair<bool, const char*> others[] = {
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
  if (keys.says_dense) to[kDense] = HubJson::array();
  to[kWithBalance] = from.experts.balance > 0;
  if (from.experts.balance > 0) to[kBalance] = from.experts.balance;
}

}  // namespace tessera
