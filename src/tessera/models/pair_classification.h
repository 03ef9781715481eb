#pragma once
/// Classifiers of texts that are models which write one sequence from another: BART's and T5's.

#include "tessera/models/classification.h"
#include "tessera/models/translation.h"

namespace tessera {

/// What a decoder makes of ids [b, t], for source [b, s]: [b, t, width].
using DecoderRows = Value (*)(const ModelConfig& config, Value source, Value ids, const Pass& pass);

/// The model reads a text and writes it again behind the start token, as in transformers'
/// ...ForSequenceClassification. What it makes of the last token, which ends the text, goes through
/// two products (blocks classifier.dense and classifier.out_proj) with tanh between and dropout
/// before each. Texts stand within what the tokenizer's post-processor puts around them, or have the
/// end token behind each. Errors of its frame: Fault::Data: a tokenizer that ends texts otherwise.
TextClassifier pair_classifier(const ModelConfig& config, DecoderRows rows, const WeightInit& init);

}  // namespace tessera
