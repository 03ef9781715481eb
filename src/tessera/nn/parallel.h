#pragma once
/// Data, tensor, sequence and context parallelism and ZeRO for Transformers, as one strategy.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ir/strategy.h"
#include "tessera/nn/model.h"

namespace tessera {

/// The mesh dp x cp x tp and the use of its axes. The size of dp is devices / (context x tensor).
/// docs/parallelism.md explains each field.
struct ParallelConfig {
  std::int64_t devices = 1;
  std::int64_t tensor = 1;        // tp shards heads, hidden widths and the vocabulary
  std::int64_t context = 1;       // cp shards the sequence
  bool sequence = false;          // tp also shards the residual stream, along the sequence
  bool shard_optimizer = false;   // dp shards moments: ZeRO-1
  bool shard_gradients = false;   // dp also shards accumulated gradients: ZeRO-2
  bool shard_parameters = false;  // dp also shards stored parameters: ZeRO-3, FSDP
  std::int64_t micro_batches = 1;
  std::int64_t ranks_per_host = 0;  // consecutive ranks that share a host; 0: all of them
  std::int64_t data() const { return devices / (tensor * context); }
  friend bool operator==(const ParallelConfig&, const ParallelConfig&) = default;
};

/// The axes in the order of the mesh, outermost first. The axis of time is kMicrobatchAxis.
inline constexpr std::string_view kDataAxis = "dp", kContextAxis = "cp", kTensorAxis = "tp";

/// All problems of `config` for that model, one sentence each, with the legal values.
std::vector<std::string> problems(const ParallelConfig& config, const ModelConfig& model);

/// The strategy for compile(). BatchSplit::Whole: every device has all of the batch, as sampling
/// needs. Axes whose ranks are not all on one host have Level::Host. Errors: devices that tensor x
/// context do not divide.
enum class BatchSplit { Cut, Whole };
Strategy strategy_of(const ParallelConfig& config, BatchSplit batch = BatchSplit::Cut);

}  // namespace tessera
