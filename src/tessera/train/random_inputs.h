#pragma once
/// Batches without data: for comparisons and times.

#include <cstdint>

#include "tessera/models/task.h"
#include "tessera/tensor/batch_inputs.h"

namespace tessera {

/// Random values of an input: floats from -1 to 1, or whole numbers. Samples have unequal numbers
/// of labels: a mean over samples would be another number than one over labels.
void fill_randomly(const TaskInput& input, std::uint64_t seed, std::int64_t step,
                   BatchInputs& batch);

}  // namespace tessera
