#pragma once
/// MindSpore's parallel configuration of Transformers: how many parts each kind of parallelism
/// cuts a model into. Layers need none of it: it becomes the ParallelConfig that strategy_of takes.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/models/parallel.h"

namespace tessera {

/// Of ops that know no embedding and no stage, such as a loss.
struct OpParallelConfig {
  std::int64_t data_parallel = 1, model_parallel = 1;
  friend bool operator==(const OpParallelConfig&, const OpParallelConfig&) = default;
};

/// Of embeddings.
struct EmbeddingOpParallelConfig {
  std::int64_t data_parallel = 1, model_parallel = 1;
  bool vocab_emb_dp = true;
  friend bool operator==(const EmbeddingOpParallelConfig&,
                         const EmbeddingOpParallelConfig&) = default;
};

/// Names and defaults as in MindSpore.
struct TransformerOpParallelConfig {
  std::int64_t data_parallel = 1;    // parts of the batch
  std::int64_t model_parallel = 1;   // parts of heads, hidden widths and the head's vocabulary
  std::int64_t expert_parallel = 1;  // parts of the experts, among parts of the batch
  std::int64_t pipeline_stage = 1;   // parts of the layers
  std::int64_t micro_batch_num = 1;  // parts of the batch that are computed one after another
  bool optimizer_shard = false;      // parameters and moments are stored in data_parallel parts
  /// Groups of neighbouring layers; the gradients of a group are summed together (`set_comm_fusion`
  /// of MindSpore's lambda_func). A group has layers / groups layers, rounded down, and at least
  /// one; layers that are left over make further groups. Other parameters are summed each alone.
  std::int64_t gradient_aggregation_group = 4;
  bool recompute = false;    // backward computes the layers again
  bool vocab_emb_dp = true;  // true: tables of embeddings are whole; false: cut by rows

  OpParallelConfig dp_mp_config() const { return {data_parallel, model_parallel}; }
  EmbeddingOpParallelConfig embedding_dp_mp_config() const {
    return {data_parallel, model_parallel, vocab_emb_dp};
  }
  /// data_parallel x model_parallel x pipeline_stage.
  std::int64_t parts() const { return data_parallel * model_parallel * pipeline_stage; }

  /// On `devices` devices. If these are more than parts(), the others repeat what neighbours
  /// compute: repeated_ranks names them.
  /// Errors: a number below 1; more parts than devices; devices that are no multiple of the parts;
  /// data_parallel that expert_parallel does not divide; fewer micro-batches than stages, which
  /// MindSpore's PipelineCell refuses too.
  ParallelConfig on(std::int64_t devices) const;
  friend bool operator==(const TransformerOpParallelConfig&,
                         const TransformerOpParallelConfig&) = default;
};

/// MindSpore's mixture of experts, with its names and defaults.
struct MoEConfig {
  std::int64_t expert_num = 1;    // 1: a layer has one feed-forward part, and no router
  double capacity_factor = 1.1;   // at least 1: tokens that an expert takes, of the mean
  double aux_loss_factor = 0.05;  // less than 1
  std::int64_t num_experts_chosen = 1;

  /// What layers take. Capacity and loss are of `samples` samples, where MindSpore's are of a part of
  /// data_parallel: there another mesh drops other tokens. First choices come first, as there. The
  /// loss has a mean of 1 where all is even, and not one for each choice; the weight of a single
  /// choice is its probability, from which the router learns.
  /// Errors: a number out of these bounds; more choices than experts.
  ExpertsConfig experts(std::int64_t samples = 1) const;
  friend bool operator==(const MoEConfig&, const MoEConfig&) = default;
};

/// The ranks that compute the same, in groups; empty where each has work of its own. Of 8 devices
/// with 4 parts: {0, 1}, {2, 3}, {4, 5}, {6, 7}.
std::vector<std::vector<int>> repeated_ranks(const ParallelConfig& config);
/// "ranks 0-1, 2-3, 4-5, 6-7 compute the same"; empty where none do.
std::string repeated_ranks_text(const ParallelConfig& config);

}  // namespace tessera
