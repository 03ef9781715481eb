#pragma once
/// Models whose tokens see the whole sample, and which learn tokens that are masked: BERT and its
/// variants.

#include "tessera/models/multiple_choice.h"
#include "tessera/models/question_answering.h"
#include "tessera/models/sentence_embedding.h"
#include "tessera/models/token_classification.h"

namespace tessera {

/// The task of predicting masked tokens and, where samples have two parts, how these belong
/// together. Post-norm layers with biases; the tokens' decoder is the token embedding. `parts`: of
/// samples, those of the model or One: then all tokens are of the first type.
///
/// Inputs: as token_files/masked_pairs.h says. Loss: the sum of the mean cross-entropies of the
/// tokens that are predicted and of the second part. Blocks: embed, layers.N, mlm and, of two
/// parts, pooler and that which judges.
Task masked_lm(const ModelConfig& config, const MaskedModel& model, SampleParts parts);

/// Logits of the tokens that are predicted, in the block `block`: [b, s, vocabulary], or [b, k,
/// vocabulary] at k masked positions. The decoder is the table of tokens.
Value masked_logits(const ModelConfig& config, const MaskedModel& model, const EncodedTokens& read,
                    const TaskValues& inputs, std::string_view block = "mlm");

/// FamilyTask::find_problems of masked_lm, of samples of such parts.
void find_masked_problems(const ModelConfig& config, SampleParts parts, FieldProblems& problems);

/// ModelFamily::cuts.
inline constexpr TensorCut kMaskedCuts[] = {{"*mlm.bias", 0, 1}};

/// ModelFamily::reads.
inline constexpr ReadField kMaskedReads[] = {
    {"layers"},  {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"},         {"norm-eps"},
    {"context"}, {"positions"}, {"vocab-size"}, {"dropout"}, {"attention-dropout"}, {"init-std"}};
/// The same where tables are narrow.
inline constexpr ReadField kNarrowReads[] = {
    {"layers"},  {"heads"},     {"kv-heads"},   {"width"},   {"embedding-width"},   {"ffn-width"},
    {"context"}, {"positions"}, {"vocab-size"}, {"dropout"}, {"attention-dropout"}, {"norm-eps"},
    {"init-std"}};

/// FamilyTask::reads of masked_lm.
inline constexpr ReadField kMaskedLmReads[] = {{"masked-positions"}};

/// The task masked_lm with samples of such parts.
template <const MaskedModel& kModel, SampleParts kParts>
constexpr FamilyTask masked_task(const TaskKind& kind) {
  return {kind, [](const ModelConfig& config) { return masked_lm(config, kModel, kParts); },
          kMaskedLmReads,
          [](const ModelConfig& config, FieldProblems& problems) {
            find_masked_problems(config, kParts, problems);
          }};
}

/// ModelFamily::tasks of a model whose samples have two parts.
template <const MaskedModel& kModel>
inline constexpr auto kMaskedTasks = joined(
    std::array{masked_task<kModel, kModel.parts>(kPretraining),
               masked_task<kModel, SampleParts::One>(kMaskedLm)},
    text_tasks<encoder_classifier<kModel>>(classifier_reads(kModel), /*head=*/"classifier"),
    std::array{FamilyTask{kTokenClassification,
                          [](const ModelConfig& config) {
                            return encoder_token_classification(config, kModel);
                          },
                          classifier_reads(), find_classifier_problems, /*head=*/"classifier"},
               FamilyTask{kQuestionAnswering,
                          [](const ModelConfig& config) {
                            return encoder_question_answering(config, kModel);
                          },
                          question_reads(kModel), find_question_problems,
                          /*head=*/kModel.answers},
               choice_task<kModel>(), embedding_task<kModel>()});

/// Of one that learns masked tokens alone: all but the first.
template <const MaskedModel& kModel>
inline constexpr std::span<const FamilyTask> kOnePartTasks =
    std::span<const FamilyTask>(kMaskedTasks<kModel>).subspan(1);

}  // namespace tessera
