#pragma once
/// How well labels, numbers and texts were predicted, as the scores of data sets have it. None
/// needs a model: predictions and what they should be are given.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera {

// Labels by number, one of each row. Errors of all: Fault::Usage: as many predictions as labels are
// not given, or none.

/// The share of rows whose label is predicted, 0 to 1.
double accuracy_of(std::span<const std::int32_t> labels, std::span<const std::int32_t> predicted);
/// F1 of one label: 2 x right / (labels + predictions), 0 where there are neither.
double f1_of_label(std::span<const std::int32_t> labels, std::span<const std::int32_t> predicted,
                   std::int32_t label);
/// The mean of f1_of_label over all that are labels or predictions.
double mean_f1(std::span<const std::int32_t> labels, std::span<const std::int32_t> predicted);
/// Matthews' correlation, -1 to 1, of any number of labels; 0 where all labels, or all predictions,
/// are one.
/// Source:  Gorodkin 2004, as scikit-learn's matthews_corrcoef.
double matthews_correlation(std::span<const std::int32_t> labels,
                            std::span<const std::int32_t> predicted);

// Numbers; none where one side does not vary.

std::optional<double> pearson(std::span<const double> x, std::span<const double> y);
/// Of ranks; equal numbers share the mean of theirs, as in scipy's rankdata.
std::optional<double> spearman(std::span<const double> x, std::span<const double> y);

// Rows of a group: the answers to a question, the texts that a query may mean. `groups` has the name
// of each row's; label 1 is "right".

/// MultiRC's: F1 of label 1 over all answers, and the share of questions of which all answers are
/// labelled right.
struct AnswerSetScores {
  double f1 = 0, exact_match = 0;
};
AnswerSetScores answer_set_scores(std::span<const std::string> groups,
                                  std::span<const std::int32_t> labels,
                                  std::span<const std::int32_t> predicted);
/// The share of a group's rows with label 1 that are among its `k` rows with the highest scores, of
/// equal ones the first; the mean over groups that have such rows. Errors: none has.
double recall_at(std::int64_t k, std::span<const std::string> groups,
                 std::span<const std::int32_t> labels, std::span<const double> scores);

/// The fewest words to change, leave out and add that make the hypotheses of the references, and how
/// many these have. Words stand between blanks.
struct WordErrors {
  std::int64_t changed = 0, left_out = 0, added = 0, words = 0;
  /// The word error rate: it is above 1 where more words are added than there are.
  double rate() const {
    return static_cast<double>(changed + left_out + added) / static_cast<double>(words);
  }
};
/// Of a corpus, line by line. Errors: Fault::Usage: another number of references than hypotheses;
/// references without a word.
WordErrors word_errors(std::span<const std::string> hypotheses,
                       std::span<const std::string> references);

}  // namespace tessera
