#include "tessera/models/op_parallel_config.h"

#include <utility>

#include "tessera/base/divisors.h"
#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

ParallelConfig TransformerOpParallelConfig::on(std::int64_t devices) const {
  for (const auto& [name, value] : {std::pair("data_parallel", data_parallel),
                                    {"model_parallel", model_parallel},
                                    {"expert_parallel", expert_parallel},
                                    {"pipeline_stage", pipeline_stage},
                                    {"micro_batch_num", micro_batch_num},
                                    {"gradient_aggregation_group", gradient_aggregation_group}})
    require(value >= 1, name, " is ", value, "; it must be at least 1");
  require(micro_batch_num >= pipeline_stage, "micro_batch_num ", micro_batch_num,
          " is less than pipeline_stage ", pipeline_stage,
          ", so some stages would be idle; give at least ", pipeline_stage,
          " micro-batches, preferably several times as many");
  require(data_parallel % expert_parallel == 0, "expert_parallel ", expert_parallel,
          " does not divide data_parallel ", data_parallel, "; it can be ",
          divisors(data_parallel));
  const std::int64_t all =
      size_product({data_parallel, model_parallel, pipeline_stage}, "parts of the model");
  const std::string product = text("data_parallel ", data_parallel, " x model_parallel ",
                                   model_parallel, " x pipeline_stage ", pipeline_stage);
  require(all <= devices, product, " are ", all, " parts, but there are ", devices,
          " devices; lower one of them, or start ", all, " devices");
  require(devices % all == 0, devices, " devices are no multiple of the ", all, " parts of ",
          product, "; give ", devices / all * all, " or ", (devices / all + 1) * all, " devices");
  ParallelConfig out;
  out.devices = devices;
  out.pipeline = pipeline_stage;
  out.tensor = model_parallel;
  out.experts = expert_parallel;
  out.repeat = devices / all;
  out.micro_batches = micro_batch_num;
  out.whole_embeddings = vocab_emb_dp;
  out.shard_parameters = optimizer_shard;
  out.gather = GatherScope::Step;
  out.gradient_groups = gradient_aggregation_group;
  if (recompute) out.recompute = Recompute::Full;
  return out;
}

ExpertsConfig MoEConfig::experts(std::int64_t samples) const {
  require(expert_num >= 1, "expert_num is ", expert_num, "; it must be at least 1");
  require(num_experts_chosen >= 1 && num_experts_chosen <= expert_num, "num_experts_chosen is ",
          num_experts_chosen, ", of expert_num ", expert_num, "; it must be from 1 to that");
  require(capacity_factor >= 1, "capacity_factor is ", capacity_factor, "; it must be at least 1");
  require(aux_loss_factor >= 0 && aux_loss_factor < 1, "aux_loss_factor is ", aux_loss_factor,
          "; it must be at least 0 and less than 1");
  require(samples >= 1, "samples is ", samples, "; it must be at least 1");
  if (expert_num == 1) return {};
  return {.experts = expert_num,
          .chosen = num_experts_chosen,
          .pre_softmax = num_experts_chosen == 1,
          .samples = samples,
          .capacity = capacity_factor,
          .drop = DropPolicy::Choice,
          .balance = aux_loss_factor};
}

std::vector<std::vector<int>> repeated_ranks(const ParallelConfig& config) {
  std::vector<std::vector<int>> out;
  if (config.repeat == 1) return out;
  for (int rank = 0; rank < config.devices; ++rank) {
    if (rank % config.repeat == 0) out.emplace_back();
    out.back().push_back(rank);
  }
  return out;
}

std::string repeated_ranks_text(const ParallelConfig& config) {
  std::vector<std::string> groups;
  for (const std::vector<int>& group : repeated_ranks(config))
    groups.push_back(text(group.front(), "-", group.back()));
  return groups.empty() ? "" : text("ranks ", join(groups), " compute the same");
}

}  // namespace tessera
