/// Scores of labels, numbers, answers and words against scikit-learn and scipy:
/// tools/golden/label_scores.py makes tests/golden/label_scores.json.

#include "tessera/data/label_scores.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "repo_file.h"
#include "tessera/base/error.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

using Labels = std::vector<std::int32_t>;
using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

nlohmann::json golden(const char* kind) {
  return nlohmann::json::parse(read_file(repo_file("tests/golden/label_scores.json"))).at(kind);
}

TEST(LabelScores, AreThoseOfScikitLearn) {
  for (const nlohmann::json& c : golden("labels")) {
    const Labels labels = c["labels"], predicted = c["predicted"];
    EXPECT_NEAR(accuracy_of(labels, predicted), c["accuracy"], 1e-12);
    EXPECT_NEAR(f1_of_label(labels, predicted, 1), c["f1"], 1e-12);
    EXPECT_NEAR(mean_f1(labels, predicted), c["mean_f1"], 1e-12);
    EXPECT_NEAR(matthews_correlation(labels, predicted), c["matthews"], 1e-12);
  }
}

TEST(LabelScores, CorrelationsAreThoseOfScipy) {
  for (const nlohmann::json& c : golden("numbers")) {
    const Numbers x = c["x"], y = c["y"];
    EXPECT_NEAR(*pearson(x, y), c["pearson"], 1e-12);
    EXPECT_NEAR(*spearman(x, y), c["spearman"], 1e-12);
  }
  EXPECT_FALSE(pearson(Numbers{1, 2}, Numbers{3, 3})) << "one side does not vary";
}

TEST(LabelScores, OfGroups) {
  for (const nlohmann::json& c : golden("groups")) {
    const Names groups = c["groups"];
    const Labels labels = c["labels"], predicted = c["predicted"];
    const AnswerSetScores found = answer_set_scores(groups, labels, predicted);
    EXPECT_NEAR(found.f1, c["answers"][0], 1e-12);
    EXPECT_NEAR(found.exact_match, c["answers"][1], 1e-12);
    const Numbers scores = c["scores"];
    std::size_t at = 0;
    for (const int k : {1, 2, 5})
      EXPECT_NEAR(recall_at(k, groups, labels, scores), c["recall"][at++], 1e-12) << k;
  }
  EXPECT_THROW(recall_at(1, Names{"q"}, Labels{0}, Numbers{1}), Error) << "nothing to find";
}

TEST(LabelScores, WordErrorsAreTheFewest) {
  for (const nlohmann::json& c : golden("words")) {
    const Names hypotheses = c["hypotheses"], references = c["references"];
    const WordErrors found = word_errors(hypotheses, references);
    EXPECT_EQ(found.changed + found.left_out + found.added, c["errors"]);
    EXPECT_NEAR(found.rate(), c["rate"], 1e-12);
  }
  const WordErrors kinds = word_errors(Names{"a x c d e", "b"}, Names{"a b c", "a b"});
  EXPECT_EQ(kinds.changed, 1);
  EXPECT_EQ(kinds.added, 2);
  EXPECT_EQ(kinds.left_out, 1);
  EXPECT_EQ(kinds.words, 5);
}

TEST(LabelScores, OfUnequalNumbersAreRefused) {
  EXPECT_THROW(accuracy_of(Labels{1}, Labels{1, 0}), Error);
  EXPECT_THROW(matthews_correlation(Labels{}, Labels{}), Error);
  EXPECT_THROW(word_errors(Names{"a"}, Names{" "}), Error) << "no word";
}

}  // namespace
}  // namespace tessera
