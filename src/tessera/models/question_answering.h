#pragma once
/// The task of answering questions by parts of texts.

#include "tessera/data/question_rows.h"
#include "tessera/models/classification.h"

namespace tessera {

/// A linear layer on each token says how likely an answer begins and ends there, as in
/// transformers' ...ForQuestionAnswering (block MaskedModel::answers). Inputs and samples: those of
/// data/question_rows.h. Loss: the mean of the mean cross-entropies of the first and of the last
/// token over all positions. Predicted: start, end [batch, context], the logits of each. Judged by
/// answer_judge.
Task encoder_question_answering(const ModelConfig& config, const MaskedModel& model);

/// FamilyTask::reads and find_problems.
inline constexpr ReadField kQuestionReads[] = {
    {"doc-stride"}, {"max-answer-length"}, {"classifier-dropout"}};
constexpr std::span<const ReadField> question_reads(const MaskedModel& model) {
  return std::span(kQuestionReads).first(model.drops_before_answers ? 3 : 2);
}
void find_question_problems(const ModelConfig& config, FieldProblems& problems);

/// Judges logits start and end, by these names, of the windows of the held-out questions of `data`.
/// The answer to a question is the part of its text, of at most most_tokens, with the greatest sum
/// of the two logits of its ends, over all windows; of each window the kBestEnds likeliest ends are
/// tried. Where some questions of the data have no answer, it is the empty text where the least sum
/// at [CLS] over the windows is greater than that. Scores: exact_match and f1, from 0 to 100 as
/// SQuAD's script has them. Table: row, id, label, prediction.
/// Source: postprocess_qa_predictions in transformers'
/// examples/pytorch/question-answering/utils_qa.
inline constexpr std::int64_t kBestEnds = 20;
std::unique_ptr<Judge> answer_judge(const Dataset& data, const QuestionSamplesOptions& windows,
                                    std::int64_t most_tokens);

}  // namespace tessera
