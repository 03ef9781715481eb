#pragma once
/// Language models that predict the next token from those before it.

#include "tessera/models/family.h"

namespace tessera {

/// As TextWriting::logits.
using LogitsFunction = Value (*)(const ModelConfig& config, Value ids, const Pass& pass);

/// The task of predicting the next token.
///
/// Inputs: ids, labels [b, context] of i32; labels are the tokens one later, kIgnoredLabel where
/// there is none. Loss: mean cross-entropy over all labels that count. Data: windows of a text.
Task causal_lm(const ModelConfig& config, LogitsFunction logits);

/// Embedding, `config.layers` layers that see what is before them, norm and head. The layers are
/// `layer`, with the sizes, rates and deviations of `config`. Blocks: embed, layers.N, norm, head.
enum class Positions { Learned, Rotary };
Value causal_transformer(const ModelConfig& config, TransformerLayer layer, Positions positions,
                         Value ids, const Pass& pass);

}  // namespace tessera
