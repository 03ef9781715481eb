/// Scores of tags and of answers beside what seqeval and SQuAD's script say.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/data/answer_scores.h"
#include "tessera/data/tag_scores.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

nlohmann::json golden_scores(const char* part) {
  return nlohmann::json::parse(read_file(repo_file("tests/golden/span_scores.json")))[part];
}

// Quotients of small whole numbers: both round once or twice.
constexpr double kRounded = 1e-14;

TEST(TagScores, EqualSeqevals) {
  for (const auto& c : golden_scores("tags")) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const auto predictions = c["predictions"].get<std::vector<Tags>>();
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      std::vector<Entity> wanted;
      for (const auto& e : c["entities"][i]) wanted.push_back({e[0], e[1], e[2]});
      EXPECT_EQ(entities_of(predictions[i]), wanted) << "sentence " << i;
    }
    const TagScores scores = tag_scores(c["labels"].get<std::vector<Tags>>(), predictions);
    EXPECT_NEAR(scores.accuracy, c["accuracy"], kRounded);
    EXPECT_NEAR(scores.all.precision(), c["precision"], kRounded);
    EXPECT_NEAR(scores.all.recall(), c["recall"], kRounded);
    EXPECT_NEAR(scores.all.f1(), c["f1"], kRounded);
    EXPECT_EQ(scores.types.size(), c["types"].size());
    for (const auto& [type, counts] : scores.types) {
      SCOPED_TRACE(type);
      const auto& wanted = c["types"][type];
      EXPECT_NEAR(counts.precision(), wanted[0], kRounded);
      EXPECT_NEAR(counts.recall(), wanted[1], kRounded);
      EXPECT_NEAR(counts.f1(), wanted[2], kRounded);
    }
  }
}

TEST(TagScores, KnowTagsOfEntities) {
  EXPECT_TRUE(are_entity_tags(Tags{"O", "B-PER", "I-PER", "E-PER", "S-PER", "B"}));
  EXPECT_FALSE(are_entity_tags(Tags{"NOUN", "VERB"}));
  EXPECT_FALSE(are_entity_tags(Tags{"O", "BPER"}));
  EXPECT_FALSE(are_entity_tags(Tags{"0", "1"}));
}

TEST(TagScores, RefuseOtherLengths) {
  const std::vector<Tags> one = {{"O"}}, longer = {{"O", "O"}}, two = {{"O"}, {"O"}};
  EXPECT_EQ(message_of([&] { (void)tag_scores(one, two); }),
            "there are tags of 2 sentences, but labels of 1; give as many of both");
  EXPECT_EQ(message_of([&] { (void)tag_scores(one, longer); }),
            "sentence 1 has 2 tags, but 1 labels; give as many of both");
}

TEST(AnswerScores, EqualSquads) {
  const nlohmann::json golden = golden_scores("answers");
  for (const auto& c : golden["normalized"])
    EXPECT_EQ(normalized_answer(c[0].get<std::string>()), c[1].get<std::string>()) << c[0];
  for (const auto& c : golden["pairs"]) {
    const std::string prediction = c["prediction"], answer = c["answer"];
    EXPECT_EQ(exact_match(prediction, answer), c["exact"].get<double>()) << c;
    EXPECT_NEAR(answer_f1(prediction, answer), c["f1"], kRounded) << c;
  }
  std::vector<std::string> predictions;
  std::vector<std::vector<std::string>> answers;
  for (const auto& q : golden["questions"]) {
    predictions.push_back(q["prediction"]);
    answers.push_back(q["answers"]);
  }
  const AnswerScores scores = answer_scores(predictions, answers);
  EXPECT_NEAR(scores.exact_match, golden["exact_match"], 1e-12);
  EXPECT_NEAR(scores.f1, golden["f1"], 1e-12);
  answers.pop_back();
  EXPECT_EQ(message_of([&] { (void)answer_scores(predictions, answers); }),
            "there are predictions for 40 questions, but 39 questions; give as many of both");
}

}  // namespace
}  // namespace tessera
