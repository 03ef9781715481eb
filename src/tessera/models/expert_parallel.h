#pragma once
/// Experts that are shared out among data parallel ranks.

#include "tessera/models/parallel.h"

namespace tessera {

/// Adds what is wrong with expert-model-parallel-size.
void find_expert_problems(const ParallelConfig& config, const ModelConfig& model,
                          FieldProblems& problems);

}  // namespace tessera
