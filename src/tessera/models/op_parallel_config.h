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
  /// fewer micro-batches than stages, which MindSpore's PipelineCell refuses too.
  ParallelConfig on(std::int64_t devices) const;
  friend bool operator==(const TransformerOpParallelConfig&,
                         const TransformerOpParallelConfig&) = default;
};

/// The ranks that compute the same, in groups; empty where each has work of its own. Of 8 devices
/// with 4 parts: {0, 1}, {2, 3}, {4, 5}, {6, 7}.
std::vector<std::vector<int>> repeated_ranks(const ParallelConfig& config);
/// "ranks 0-1, 2-3, 4-5, 6-7 compute the same"; empty where none do.
std::string repeated_ranks_text(const ParallelConfig& config);

}  // namespace tessera
