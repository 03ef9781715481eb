#pragma once
/// What follows from a configuration: in which floats a run computes, and whether it validates.

#include <optional>

#include "tessera/config/config.h"
#include "tessera/models/task.h"
#include "tessera/passes/compute_in.h"

namespace tessera {

/// The floats in which gradients are added up: what reduce_dtype says, or leaves to the run.
DType sums_of(const RunConfig& config);
/// The 16-bit floats of a run in mixed precision; nullopt: all is f32.
std::optional<Precision> precision_of(const RunConfig& config);

/// The run validates: after some steps, after epochs, or at the end.
bool validates(const RunConfig& config, const Task& task);

/// What the model predicts of the held-out data is judged after each epoch.
bool judges_epochs(const RunConfig& config, const Task& task);

}  // namespace tessera
