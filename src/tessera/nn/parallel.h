#pragma once
/// The well-known ways to spread a Transformer over devices, as one strategy.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ir/strategy.h"
#include "tessera/nn/model.h"

namespace tessera {

/// Sizes of a mesh dp x cp x tp and what lies along its axes. Data parallel is what remains:
/// devices / (context x tensor).
struct ParallelConfig {
  std::int64_t devices = 1;
  std::int64_t tensor = 1;        // heads, hidden widths and the vocabulary
  std::int64_t context = 1;       // positions of the sequence
  bool sequence = false;          // the residual stream too lies along the tensor axis
  bool shard_optimizer = false;   // moments over the data axis: ZeRO-1
  bool shard_gradients = false;   // and the sums of gradients: ZeRO-2
  bool shard_parameters = false;  // and parameters as they are stored: ZeRO-3, FSDP
  std::int64_t micro_batches = 1;
  std::int64_t data() const { return devices / (tensor * context); }
  friend bool operator==(const ParallelConfig&, const ParallelConfig&) = default;
};

/// The axes, in the order of the mesh, outermost first; the one of time is kMicrobatchAxis.
inline constexpr std::string_view kDataAxis = "dp", kContextAxis = "cp", kTensorAxis = "tp";

/// All that is wrong with it for that model, one sentence each, with what is legal.
std::vector<std::string> problems(const ParallelConfig& config, const ModelConfig& model);

/// Batch::Whole: every device has all of the batch, as for one sample.
/// Errors: devices that tensor x context do not divide.
enum class Batch { Cut, Whole };
Strategy strategy_of(const ParallelConfig& config, Batch batch = Batch::Cut);

}  // namespace tessera
