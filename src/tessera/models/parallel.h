#pragma once
/// Data, tensor, sequence, context and pipeline parallelism and ZeRO for Transformers, as one
/// strategy.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/ir/strategy.h"
#include "tessera/models/config.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// The mesh dp x cp x tp (or in another order: rank_order) and the use of its axes, and the stages,
/// each of which has such a mesh.
/// Where ZeRO spreads states over some of the data parallel ranks only, dp is cut in two, dpo x dp;
/// where experts are sharded too, in three, dpo x dp x ep. The size of all is devices / (pipeline x
/// context x tensor). docs/guides/scale.md explains each
/// field.
struct ParallelConfig {
  std::int64_t devices = 1;
  std::int64_t pipeline = 1;        // stages: each has devices / pipeline consecutive ranks
  std::int64_t virtual_stages = 0;  // chunks on each stage; 0: the fewest that the schedule admits
  std::string schedule{kUsualSchedule};  // of schedule_names()
  std::vector<ChunkPin> chunks = {};     // blocks by hand: chunks_by_layer(); all others by cost
  std::string layout = {};        // how many layers each chunk has: "3,4,4,3"; empty: by cost
  std::int64_t tensor = 1;        // tp shards heads, hidden widths and the vocabulary
  std::int64_t context = 1;       // cp shards the sequence
  std::int64_t experts = 1;       // ep, the inner part of dp, shards experts
  bool sequence = false;          // tp also shards the residual stream, along the sequence
  bool shard_optimizer = false;   // dp shards moments: ZeRO-1
  bool shard_gradients = false;   // dp also shards accumulated gradients: ZeRO-2
  bool shard_parameters = false;  // dp also shards stored parameters: ZeRO-3, FSDP
  /// Ranks over which ZeRO spreads a state, neighbours along dp; the others have copies of it. It
  /// divides data(); 0: all of them.
  std::int64_t shard_size = 0;
  std::int64_t shard_threshold = 0;         // bytes: ZeRO leaves whole what has smaller shards
  std::vector<std::string> unsharded = {};  // as Strategy::unsharded: ZeRO leaves them whole
  Recompute recompute = Recompute::None;    // what backward computes again, of the layers below
  std::string recompute_layers = "all";     // "all", or numbers and ranges: "0-5,8"; where that is
                                            // above Elementwise, other layers do that
  OffloadStrategy offload = {};             // what lies on the host
  GatherScope gather = GatherScope::Block;  // for how long gathered parameters are kept
  /// Of tokens that another cp rank has; none: that by which less is sent.
  std::optional<KeyExchange> keys = std::nullopt;
  std::int64_t bucket_mb = 0;        // MiB of gradients that are summed together; 0: each alone
  std::int64_t gradient_groups = 0;  // gradients of layers are summed in so many groups; 0: none
  std::int64_t micro_batches = 1;
  Machine machine = {};                 // whose links the ranks have, in the order of their numbers
  std::string rank_order = "dp,cp,tp";  // of the axes of a stage, outermost first
  std::int64_t repeat = 1;              // so many consecutive ranks compute the same
  bool whole_embeddings = false;        // tp leaves tables of token embeddings whole

  std::int64_t ranks_per_stage() const { return devices / pipeline; }
  std::int64_t data() const { return devices / (pipeline * tensor * context * repeat); }
  bool shards_states() const { return shard_optimizer || shard_gradients || shard_parameters; }
  friend bool operator==(const ParallelConfig&, const ParallelConfig&) = default;
};

/// The axes in the order of the mesh, outermost first. The axis of time is kMicrobatchAxis.
/// kDataOuterAxis: groups of data parallel ranks, each of which has all of the states.
inline constexpr std::string_view kDataOuterAxis = "dpo";
inline constexpr std::string_view kDataAxis = "dp", kExpertAxis = "ep", kContextAxis = "cp",
                                  kTensorAxis = "tp", kRepeatAxis = "repeat";

/// All devices, stages first: "pp=2 dp=4 tp=2"; the mesh alone where there is one stage.
std::string mesh_text(const Strategy& strategy);

/// The numbers in "0-5,8", in order; "all": those below `layers`. Errors: another text; a layer
/// that is not there.
std::vector<std::int64_t> parse_layers(std::string_view list, std::int64_t layers);

/// The axes in "dp,cp,tp". Errors: one that is missing, there twice or unknown.
std::vector<std::string> parse_rank_order(std::string_view order);

/// How many layers each chunk has, of a text like "0,4,4,0". Errors: another text.
std::vector<std::int64_t> parse_layout(std::string_view layout);

/// All problems of `config` for that model, one sentence each, with the legal values.
FieldProblems problems(const ParallelConfig& config, const ModelConfig& model);

/// The strategy for compile(). BatchSplit::Whole: every device has all of the batch, as sampling
/// needs. Of the `model` it takes the names of its layers and what tensor parallelism splits. The
/// level of an axis is the lowest of which a unit of the machine has all ranks of the axis and
/// those inside it. The mesh is that of one stage. Errors: devices that pipeline x tensor x context
/// x repeat do not divide; no such schedule; an order of ranks that lacks an axis.
enum class BatchSplit { Cut, Whole };
Strategy strategy_of(const ParallelConfig& config, BatchSplit batch, const ModelConfig& model);
/// The same for models of which nothing is known: unless told, keys go round a ring.
inline Strategy strategy_of(ParallelConfig config, BatchSplit batch = BatchSplit::Cut) {
  if (!config.keys) config.keys = KeyExchange::Ring;
  return strategy_of(config, batch, ModelConfig{});
}

/// Puts every layer on a chunk by its number (layer_blocks): those of an encoder come first, then
/// those of its decoder. Chunks are counted from the input on, through the whole model; where a
/// stage has one chunk, they are the stages. Embedding, norm and head are not told: they go where
/// they cost least. Three layers for stage 0, all others for stage 1, which also has the head:
///
///   config.chunks = chunks_by_layer(model, [](std::int64_t layer) { return layer < 3 ? 0 : 1; });
///
/// Errors:  a chunk below 0, or below that of the layer before.
std::vector<ChunkPin> chunks_by_layer(const ModelConfig& model,
                                      const std::function<int(std::int64_t layer)>& chunk_of);

}  // namespace tessera
