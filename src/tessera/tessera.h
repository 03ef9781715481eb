#pragma once
/// All of Tessera for a C++ program: docs/guides/cpp-model.md says what is where. User scripts include
/// "tessera/rapidformer/rapidformer.h" instead.
///
/// It belongs to no room, as it includes the faces of them all, and no room can include it.

// Write a model.
#include "tessera/models/causal_lm.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/models/op_parallel_config.h"
#include "tessera/models/task.h"
#include "tessera/models/translation.h"
#include "tessera/nn/init.h"
#include "tessera/nn/layers.h"
#include "tessera/nn/loss.h"
#include "tessera/nn/optimizer.h"
#include "tessera/nn/transformer.h"
#include "tessera/nn/transformer_stack.h"
#include "tessera/ops/ops.h"
#include "tessera/ops/table.h"

// Say how it is distributed.
#include "tessera/shard/auto_parallel.h"
#include "tessera/shard/shard.h"
#include "tessera/tensor/machine.h"
#include "tessera/tensor/mesh.h"
#include "tessera/tensor/sharding.h"

// Train it.
#include "tessera/apps/command.h"
#include "tessera/apps/training.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/config.h"
#include "tessera/config/fields.h"
#include "tessera/config/output_folder.h"
#include "tessera/config/presets.h"
#include "tessera/config/problems.h"
#include "tessera/launch/launch.h"
#include "tessera/launch/ranks.h"
#include "tessera/planner/plan_file.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/pretrained/save_pretrained.h"
#include "tessera/report/inspect.h"
#include "tessera/train/prepare.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/save_graphs.h"
#include "tessera/train/step.h"
#include "tessera/train/trainer.h"

// Data.
#include "tessera/files/safetensors.h"
#include "tessera/tensor/host_tensor.h"
#include "tessera/tensor/type.h"
#include "tessera/token_files/samples.h"
#include "tessera/tokenizers/tokenizer.h"
#include "tessera/tokenizers/vocabulary.h"

// The compiler, pass by pass.
#include "tessera/ir/builder.h"
#include "tessera/ir/graph.h"
#include "tessera/ir/op_def.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/verify.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/simplify.h"
#include "tessera/plan/compile.h"
#include "tessera/plan/plan.h"
#include "tessera/plan/traffic.h"
#include "tessera/schedule/pipeline.h"
#include "tessera/schedule/schedule.h"

// What it runs on.
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/comm/collective.h"
#include "tessera/comm/communicator.h"
#include "tessera/comm/local.h"
#include "tessera/comm/processes.h"
#include "tessera/device/device.h"
#include "tessera/device/isa.h"
#include "tessera/machines/find_machine.h"
#include "tessera/machines/machine_file.h"
#include "tessera/runtime/backend.h"
#include "tessera/runtime/engine.h"
#include "tessera/runtime/executor.h"
