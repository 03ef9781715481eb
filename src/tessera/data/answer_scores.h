#pragma once
/// How well questions were answered by parts of texts, as SQuAD counts it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What is compared of an answer: in small letters, without the marks of ASCII, without the words
/// a, an and the, and with one blank between words.
/// Source:  the evaluation script of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, arXiv 1606.05250).
std::string normalized_answer(std::string_view answer);

/// 1 where both are the same once they are normalized, else 0.
double exact_match(std::string_view prediction, std::string_view answer);

/// The harmonic mean of the shares of the prediction's words that the answer has, and of the
/// answer's that the prediction has, 0 to 1; each word counts as often as both have it. Where one
/// of them has no word, 1 if the other has none either.
double answer_f1(std::string_view prediction, std::string_view answer);

/// Means over questions, from 0 to 100 as SQuAD's script has them.
struct AnswerScores {
  double exact_match = 0, f1 = 0;
};

/// The best over the answers that a question has counts. A question without answers has none: its
/// right answer is the empty text.
/// Errors: Fault::Usage: another number of predictions than of questions.
AnswerScores answer_scores(std::span<const std::string> predictions,
                           std::span<const std::vector<std::string>> answers);

}  // namespace tessera
