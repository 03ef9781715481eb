#pragma once
/// Language models that predict the next token from those before it.

#include "tessera/models/family.h"

namespace tessera {

/// As TextWriting::logits.
using LogitsFunction = Value (*)(const ModelConfig& config, Value ids, const Pass& pass);

/// The task of predicting the next token.
///
/// Inputs: ids, labels [b, context] of i32; labels are the tokens one later, kIgnoredLabel where
/// there is none. Loss: mean cross-entropy over all labels that count. Data: windows of a text,
/// the samples of token files (data/token_files.h), or documents (data/documents.h). With
/// config.reset_positions there is also positions [b, context], with config.reset_attention
/// first_seen [b, context]: see data/left_to_right.h.
Task causal_lm(const ModelConfig& config, LogitsFunction logits);

/// Embedding, `config.layers` layers that see what is before them, norm and head. Positions are
/// learned, but for a layer that rotates. Blocks: embed, layers.N, norm, head.
Value causal_transformer(const ModelConfig& config, TransformerLayer layer, Value ids,
                         const Pass& pass);

}  // namespace tessera
