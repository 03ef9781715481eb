#pragma once
/// The room `rapidformer`: the command with the flags of Rapidformer and Megatron-LM, and
/// templates.
/// For: scripts that exist, moved with few changes.
/// Not for: fields of its own: a flag becomes one of config, or is refused.
///
/// All that a user script needs.

#include "tessera/files/table_file.h"
#include "tessera/models/causal_lm.h"
#include "tessera/models/layer.h"
#include "tessera/nn/layers.h"
#include "tessera/nn/loss.h"
#include "tessera/nn/transformer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/rapidformer/engine.h"
#include "tessera/rapidformer/templates.h"
#include "tessera/tokenizers/tokenizer.h"
#include "tessera/user_code/eval_prediction.h"
#include "tessera/user_code/map_dataset.h"
#include "tessera/user_code/model.h"
#include "tessera/user_code/text_features.h"
