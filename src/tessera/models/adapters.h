#pragma once
/// What is trained of a model with adapters.

#include "tessera/models/config.h"
#include "tessera/nn/optimizer.h"

namespace tessera {

/// Of a model with adapters (LoraConfig::rank), they are trained, and the block of the task, which
/// may begin at random; nothing else. Of others: nothing changes.
void train_adapters(const ModelConfig& model, OptimizerConfig& optimizer);

/// Errors: Fault::Usage: a target of the model's adapters that no layer is called.
void require_adapter_targets(const ModelConfig& model);

}  // namespace tessera
