#pragma once
/// What a run does to take less memory: recomputing, micro-batches and offloading, as one value.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/config.h"

namespace tessera {

struct MemoryChoice {
  Recompute recompute = Recompute::None;
  std::string layers = "all";  // of the recomputing, as recompute-layers
  std::int64_t micro_batch_size = 0;
  OffloadStrategy offload = {};
  friend bool operator==(const MemoryChoice&, const MemoryChoice&) = default;
};

/// `config` is complete.
MemoryChoice memory_choice_of(const RunConfig& config);
/// Sets the fields that say it; what is derived from them stays as it was, for complete().
void set_memory_choice(RunConfig& config, const MemoryChoice& choice);

/// "--recompute-granularity full --recompute-layers 0-3 --micro-batch-size 4 --offload-optimizer"
std::string flags_text(const MemoryChoice& choice);

/// What may be offloaded.
struct OffloadKind {
  std::string_view word, field;  // "optimizer", "offload-optimizer"
  bool OffloadStrategy::*offloads;
  bool RunConfig::*given;
};
inline constexpr OffloadKind kOffloadKinds[] = {
    {"optimizer", "offload-optimizer", &OffloadStrategy::moments, &RunConfig::offload_optimizer},
    {"gradients", "offload-gradients", &OffloadStrategy::gradients, &RunConfig::offload_gradients},
    {"parameters", "offload-parameters", &OffloadStrategy::parameters,
     &RunConfig::offload_parameters},
    {"activations", "offload-activations", &OffloadStrategy::activations,
     &RunConfig::offload_activations}};

/// "optimizer", "gradients"
std::vector<std::string> offload_words(const OffloadStrategy& offload);
/// The layers that are computed again: "all", "0-3"; "none" where nothing is.
std::string recomputed_layers(const MemoryChoice& choice);

/// All that a memory cap may choose among for one run.
struct MemorySpace {
  MemoryChoice asked;
  std::vector<Recompute> recompute;      // what the run asks for, and what takes less memory
  std::int64_t layers = 0;               // above 0: the first 1 ... layers alone may be recomputed
                                         // more than the run asks for
  std::vector<std::int64_t> sizes;       // of micro-batches, the largest first
  std::vector<OffloadStrategy> offload;  // what the run asks for first, everything last

  /// How many choices there are at most.
  std::int64_t size() const;
};

/// Of a complete configuration. Nothing that was asked for is taken back: what config.given
/// names stays as it is, and anything else is only raised. Nothing is offloaded into the memory
/// that it would leave. Sizes are about halves of each other, and 1, among those that share the
/// step out evenly.
MemorySpace memory_space_of(const RunConfig& config);

/// What was asked for that keeps a run from taking less memory, as it was written.
std::vector<std::string> asked_against(const RunConfig& config);

}  // namespace tessera
