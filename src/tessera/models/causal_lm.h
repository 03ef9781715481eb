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

/// Embedding, `config.layers` layers that see what is before them, norm and head. Positions are
/// learned, but for a layer that rotates. Blocks: embed, layers.N, norm, head.
Value causal_transformer(const ModelConfig& config, TransformerLayer layer, Value ids,
                         const Pass& pass);

}  // namespace tessera
