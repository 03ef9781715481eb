#pragma once
/// Models whose tokens see the whole sample, and which learn tokens that are masked: BERT and its
/// variants.

#include "tessera/models/classification.h"

namespace tessera {

/// The task of predicting masked tokens and, where samples have two parts, how these belong
/// together. Post-norm layers with biases; the tokens' decoder is the token embedding.
///
/// Inputs: as data/masked_pairs.h says. Loss: the sum of the mean cross-entropies of the tokens
/// that are predicted and of the second part. Blocks: embed, layers.N, mlm and, of two parts,
/// pooler and that which judges.
Task masked_lm(const ModelConfig& config, const MaskedModel& model);

/// FamilyTask::find_problems of masked_lm.
void find_masked_problems(const ModelConfig& config, const MaskedModel& model,
                          FieldProblems& problems);

/// ModelFamily::cuts.
inline constexpr TensorCut kMaskedCuts[] = {{"mlm.bias", 0, 1}};

/// ModelFamily::reads.
inline constexpr ReadField kMaskedReads[] = {
    {"layers"},  {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"},         {"norm-eps"},
    {"context"}, {"positions"}, {"vocab-size"}, {"dropout"}, {"attention-dropout"}, {"init-std"}};

/// FamilyTask::reads of masked_lm.
inline constexpr ReadField kMaskedLmReads[] = {{"masked-positions"}};

/// ModelFamily::tasks.
template <const MaskedModel& kModel>
inline constexpr FamilyTask kMaskedTasks[] = {
    {kMaskedLm, "tokens that are masked",
     [](const ModelConfig& config) { return masked_lm(config, kModel); }, kMaskedLmReads,
     [](const ModelConfig& config, FieldProblems& problems) {
       find_masked_problems(config, kModel, problems);
     }},
    {kSequenceClassification, "a label for a text or a pair of texts",
     [](const ModelConfig& config) { return encoder_classification(config, kModel); },
     kClassifierReads, find_classifier_problems, /*of_rows=*/true, /*head=*/"classifier"},
};

}  // namespace tessera
