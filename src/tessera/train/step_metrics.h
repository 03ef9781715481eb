#pragma once
/// What a training step measured, as its record has it.

#include <string_view>

#include "tessera/models/task.h"
#include "tessera/nn/optimizer.h"
#include "tessera/runtime/engine.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// Reads the metrics of the step that ran last into its record.
void read_metrics(const Engine& engine, std::string_view program, const Task& task,
                  const OptimizerConfig& optimizer, StepRecord& record);

}  // namespace tessera
