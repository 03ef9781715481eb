#pragma once
/// What the planner decides about a run, as one value, and as flags of `tessera train`.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/config/fields.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

/// In which floats a run computes.
enum class Floats : std::uint8_t { AsAsked, F32, BF16, F16 };

struct PlanChoice {
  std::int64_t data = 1, tensor = 1, context = 1, pipeline = 1;
  std::int64_t experts = 1;  // data parallel ranks that share out the experts of a layer
  bool sequence = false;
  std::string order = {};                 // rank-order; empty: the usual one
  std::string schedule{kUsualSchedule};   // where there are several stages
  std::int64_t chunks = 1;                // on each stage
  std::vector<std::int64_t> layout = {};  // layers of each chunk; empty: one chunk
  std::int64_t micro_batch_size = 1;
  std::int64_t zero = 0;        // stage of ZeRO
  std::int64_t shard_size = 0;  // data parallel ranks that share out a state; 0: all
  Recompute recompute = Recompute::Elementwise;
  std::vector<std::int64_t> recomputed = {};  // layers from each chunk's first on; empty: all
  std::string given_layers = {};              // the same as a flag says it; empty: none does
  OffloadStrategy offload = {};
  Floats floats = Floats::AsAsked;

  std::int64_t devices() const { return data * tensor * context * pipeline; }
  std::int64_t total_chunks() const { return pipeline * chunks; }
  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

/// How a run of `choice` is spread: all that it does not choose is as in `base`. What ZeRO's stage
/// shards, complete() says.
ParallelConfig parallel_of(const RunConfig& base, const PlanChoice& choice);

/// `base` with what `choice` says, complete. Layers are those of base's model.
RunConfig with(const RunConfig& base, const PlanChoice& choice);

/// True for what a plan may decide: not the data, the output, the length of a run or its rates.
bool may_be_in_plan(const Field& field);

/// What makes with(base, choice) of nothing: the preset, the machine, what was asked for, and what
/// the choice sets.
std::vector<const Field*> plan_fields(const RunConfig& base, const PlanChoice& choice);
/// The same as flags: "--name", "value", "--switch", "--no-switch". A word has a blank only where
/// one that was asked for has it, as the path of a file may.
std::vector<std::string> plan_flags(const RunConfig& base, const PlanChoice& choice);
/// These as a shell reads them.
std::string plan_text(const RunConfig& base, const PlanChoice& choice);

/// "dp 16 x tp 8 x pp 16, 1f1b, micro-batch 1, ZeRO-1, recompute elementwise"
std::string to_text(const PlanChoice& choice);

}  // namespace tessera
