#pragma once
/// The task of telling the class of each word of a sentence: named entities, parts of speech.

#include "tessera/models/classification.h"

namespace tessera {

/// The task of the classifier, whose logits are of each token: [b, context, classes]. Inputs and
/// samples: those of data/labelled_texts.h, of data whose tokens have labels. Loss: mean
/// cross-entropy of the labels. Predicted: logits, and the labels beside them. Judged by tag_judge.
Task token_classification(const ModelConfig& config, TextClassifier classifier);

/// A linear layer on each token, that of transformers' ...ForTokenClassification (block
/// classifier).
Task encoder_token_classification(const ModelConfig& config, const MaskedModel& model);

/// Judges logits [batch, tokens, classes] where labels [batch, tokens] are not kIgnoredLabel, by
/// these names, of the held-out rows of `data`. Scores: accuracy, of words; and where the labels'
/// names are about entities (data/tag_scores.h), precision, recall and f1 of entities, and f1_TYPE
/// for each type. Table: row, label, prediction; tags with blanks between, of words within the
/// context.
std::unique_ptr<Judge> tag_judge(const Dataset& data);

}  // namespace tessera
