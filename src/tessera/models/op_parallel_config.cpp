#include "tessera/models/op_parallel_config.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

ParallelConfig TransformerOpParallelConfig::on(std::int64_t devices) const {
  for (const auto& [name, value] : {std::pair("data_parallel", data_parallel),
                                    {"model_parallel", model_parallel},
                                    {"pipeline_stage", pipeline_stage},
                                    {"micro_batch_num", micro_batch_num},
                                    {"gradient_aggregation_group", gradient_aggregation_group}})
    require(value >= 1, name, " is ", value, "; it must be at least 1");
  require(micro_batch_num >= pipeline_stage, "micro_batch_num ", micro_batch_num,
          " is less than pipeline_stage ", pipeline_stage,
          ", so some stages would be idle; give at least ", pipeline_stage,
          " micro-batches, preferably several times as many");
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
  out.repeat = devices / all;
  out.micro_batches = micro_batch_num;
  out.whole_embeddings = vocab_emb_dp;
  out.shard_parameters = optimizer_shard;
  out.gather = GatherScope::Step;
  out.gradient_groups = gradient_aggregation_group;
  if (recompute) out.recompute = Recompute::Full;
  return out;
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
