#pragma once
/// Which programs a step has and how they are spread over devices, from JSON.

#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/flags.h"
#include "tessera/c_api/graph_calls.h"
#include "tessera/config/config.h"
#include "tessera/plan/compile.h"
#include "tessera/search/search.h"

namespace tessera {

/// The program of a graph, by the name that it was given.
struct NamedGraph {
  std::string name;
  const OpenGraph* graph = nullptr;
};

/// What is to be compiled.
struct StepRequest {
  RunConfig config;                    // complete: devices and their threads
  std::vector<ProgramSource> sources;  // kInitProgram where there are states; then the graphs
  CompileOptions options;
  std::optional<SearchReport> search;  // of a search mode that searches
};

/// `how`:
///
///   {"flags": {"devices": 4, "tensor_model_parallel_size": 2},   flags of devices, of `tessera train`
///    "samples": 64,                      of a step; micro_batch_size counts in these
///    "mesh": {"dp": 2, "tp": 2},         in place of flags of sizes; "mb": micro-batches
///    "parallel_config": {"data_parallel": 2, "optimizer_shard": true},   the same in the words of
///                                        TransformerOpParallelConfig
///    "batch_axes": [["dp"]],             per dim of every batch input
///    "pins": {"up.weight": "[tp,-]"},    of parameters and named values
///    "parallel_mode": "auto_parallel",   with the words of AutoParallel:
///    "search_mode": "dynamic_programming", "dataset_strategy": "full_batch", "micro_batches": 1,
///    "gradients_mean": false, "loss_repeated_mean": true, "enable_parallel_optimizer": false,
///    "shard": {"up.matmul": [[2, 1], [4, 1]]}}
///
/// The first graph says how all lie; in the others every device has the whole batch.
/// Errors: Fault::Usage: words that are not there; what cannot be; a graph whose states the first
/// lacks.
StepRequest step_request(const CallJson& how, const std::vector<NamedGraph>& graphs);

/// The flags that `how` can have.
std::vector<Flag> step_flags(const OwnFamilies& families = {});

}  // namespace tessera
