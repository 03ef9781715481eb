/// Judges on logits that are written by hand.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/models/classification.h"
#include "tessera/models/question_answering.h"
#include "tessera/models/token_classification.h"

namespace tessera {
namespace {

HostTensor reals(const Shape& shape, const std::vector<double>& values) {
  HostTensor out(DType::F32, shape);
  for (std::size_t i = 0; i < values.size(); ++i) out.set(static_cast<std::int64_t>(i), values[i]);
  return out;
}

std::string table_text(const PredictionTable& table) {
  std::string out;
  for (const auto& row : table.rows) out += join(row, "|") + "\n";
  return out;
}

std::string scores_text(const NamedMeans& scores) {
  std::string out;
  for (const auto& [name, value] : scores) out += text(name, " ", value, " ");
  return out;
}

Dataset no_data() { return {Vocabulary::bytes(), Texts{TokenStream::none(), {}, {}}, ""}; }

TEST(TagJudge, CountsWordsWithALabel) {
  Dataset data = no_data();
  data.label_names = {"B-X", "I-X", "O"};
  const auto judge = tag_judge(data);
  constexpr double no = -100;
  // Two sentences of four tokens in a batch of three.
  const Shape logits{3, 4, 3};
  std::vector<double> values(36, 0);
  const int told[] = {0, 0, 1, 2, 2, 2, 0, 0};
  for (int i = 0; i < 8; ++i) values[static_cast<std::size_t>(3 * i + told[i])] = 1;
  Predictions predictions;
  predictions.emplace("logits", reals(logits, values));
  predictions.emplace("labels", reals({3, 4}, {no, 0, 1, no, 2, no, 2, no, 0, 0, 0, 0}));
  judge->add(0, 2, predictions);
  EXPECT_EQ(table_text(judge->table()), "0|B-X I-X|B-X I-X\n1|O O|O B-X\n");
  EXPECT_EQ(scores_text(judge->scores()),
            "accuracy 0.75 precision 0.5 recall 1 f1 0.6666666666666666 f1_X 0.6666666666666666 ");
}

TEST(TagJudge, OtherTagsHaveAnAccuracyAlone) {
  Dataset data = no_data();
  data.label_names = {"NOUN", "VERB"};
  const auto judge = tag_judge(data);
  Predictions predictions;
  predictions.emplace("logits", reals({1, 1, 3}, {0, 0, 1}));
  predictions.emplace("labels", reals({1, 1}, {1}));
  judge->add(0, 1, predictions);
  EXPECT_EQ(table_text(judge->table()), "0|VERB|LABEL_2\n");
  EXPECT_EQ(scores_text(judge->scores()), "accuracy 0 ");
}

TEST(ClassJudge, ScoresRowsWhoseLabelIsKnown) {
  const auto judge = class_judge({0, 1, 1, -100}, {"no", "yes"});
  Predictions predictions;
  predictions.emplace("logits", reals({4, 2}, {1, 0, 1, 0, 0, 1, 0, 1}));
  judge->add(0, 4, predictions);
  EXPECT_EQ(scores_text(judge->scores()),
            "accuracy 0.6666666666666666 f1 0.6666666666666666 matthews 0.5 ");
}

/// Questions "q" about "ab cd", a byte a token, in samples [CLS] q [SEP] ..., of which three tokens
/// are of the text.
struct AnswerCase {
  const char* name;
  bool some_without;
  std::int64_t most;
  std::vector<double> starts[2], ends[2];  // of [CLS] and the three tokens of each window
  const char* prediction;
};
const AnswerCase kAnswers[] = {
    {"the best of both windows",
     false,
     9,
     {{0, 1, 0, 0}, {0, 3, 0, 0}},
     {{0, 1, 0, 0}, {0, 0, 1, 0}},
     " c"},
    {"an end before the start is none",
     false,
     9,
     {{0, 0, 5, 0}, {0, 0, 0, 0}},
     {{0, 2, 0, 1}, {0, 0, 0, 0}},
     "b "},
    {"at most so many tokens",
     false,
     2,
     {{0, 5, 0, 0}, {0, 0, 0, 0}},
     {{0, 0, 1, 3}, {0, 0, 0, 0}},
     "ab"},
    {"[CLS] is no answer where all have one",
     false,
     9,
     {{50, 1, 0, 0}, {50, 0, 0, 0}},
     {{50, 1, 0, 0}, {50, 0, 0, 0}},
     "a"},
    {"none, where the least of both windows is greater",
     true,
     9,
     {{3, 1, 0, 0}, {2, 0, 0, 0}},
     {{3, 1, 0, 0}, {2, 0, 0, 0}},
     ""},
    {"some, where one window finds it",
     true,
     9,
     {{9, 1, 0, 0}, {0, 0, 1, 0}},
     {{9, 1, 0, 0}, {0, 0, 2, 0}},
     "c"},
};

TEST(AnswerJudge, TakesTheBestPartOverWindows) {
  for (const AnswerCase& c : kAnswers) {
    SCOPED_TRACE(c.name);
    auto questions = std::make_shared<EncodedQuestions>();
    questions->contexts.push_back({"ab cd", Vocabulary::bytes().encode_spans("ab cd")});
    questions->all.push_back({{"7", "q", 0, {{"ab", 0}}, "here"}, {'q'}, {0, 1}});
    questions->some_without = c.some_without;
    Dataset data = no_data();
    data.content = std::shared_ptr<const EncodedQuestions>(questions);
    const auto judge = answer_judge(
        data, {.context = 7, .doc_stride = 1, .frame = text_frame(1, 2, false)}, c.most);
    Predictions predictions;
    for (const bool start : {true, false}) {
      std::vector<double> values;
      for (const std::vector<double>& window : start ? c.starts : c.ends)
        values.insert(values.end(), {window[0], 20, 20, window[1], window[2], window[3], 20});
      predictions.emplace(start ? "start" : "end", reals({2, 7}, values));
    }
    judge->add(0, 2, predictions);
    EXPECT_EQ(table_text(judge->table()), text("0|7|ab|", c.prediction, "\n"));
    const bool right = c.prediction == std::string("ab");
    EXPECT_EQ(judge->scores()[0], std::pair(std::string("exact_match"), right ? 100.0 : 0.0));
  }
}

/// Rows without numbers have no label, and count in no score.
Dataset rows_labelled(const std::vector<std::vector<float>>& labels,
                      std::vector<std::string> names) {
  Dataset out = no_data();
  out.label_names = std::move(names);
  Texts texts{TokenStream::none(), {}, {}};
  for (const std::vector<float>& label : labels) {
    texts.labels.emplace_back();
    if (!label.empty()) texts.labels.back().of = label;
  }
  out.content = std::move(texts);
  return out;
}

void expect_scores(const Judge& judge, const NamedMeans& wanted) {
  const NamedMeans found = judge.scores();
  ASSERT_EQ(found.size(), wanted.size()) << scores_text(found);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].first, wanted[i].first);
    EXPECT_NEAR(found[i].second, wanted[i].second, 1e-7) << found[i].first;  // labels are of f32
  }
}

/// Numbers of scipy.
TEST(NumberJudge, CorrelatesAsScipyDoes) {
  const Dataset one =
      rows_labelled({{0.5F}, {3.8F}, {3.8F}, {}, {1.0F}, {5.0F}, {2.5F}}, {"LABEL_0"});
  const auto judge = number_judge_of_rows(one);
  Predictions predictions;
  predictions.emplace("logits", reals({8, 1}, {1, 3, 2, 9, 1, 4, 2, 77}));
  judge->add(0, 7, predictions);
  expect_scores(*judge, {{"mse", 0.8966666666666665},
                         {"mae", 0.7666666666666666},
                         {"pearson", 0.9277210032180282},
                         {"spearmanr", 0.9404032585917881}});
  EXPECT_EQ(table_text(judge->table()), "0|0.5|1\n1|3.8|3\n2|3.8|2\n3||9\n4|1|1\n5|5|4\n6|2.5|2\n");

  const Dataset two = rows_labelled(
      {{0.5F, 1}, {3.8F, 0}, {3.8F, 2}, {1.0F, 2}, {5.0F, -1}, {2.5F, 4}}, {"LABEL_0", "LABEL_1"});
  const auto of_two = number_judge_of_rows(two);
  Predictions more;
  more.emplace("logits", reals({6, 2}, {1, 0, 3, 1, 2, 1, 1, 3, 4, 0, 2, 3}));
  of_two->add(0, 6, more);
  expect_scores(*of_two, {{"mse", 0.9483333333333333},
                          {"mae", 0.8833333333333333},
                          {"pearson", 0.853955250411761},
                          {"spearmanr", 0.8643220199799351}});
  EXPECT_EQ(of_two->table().rows[1], (std::vector<std::string>{"1", "[3.8, 0]", "[3, 1]"}));
}

TEST(NumberJudge, WhatDoesNotVaryHasNoCorrelation) {
  const Dataset data = rows_labelled({{1.0F}, {2.0F}}, {"LABEL_0"});
  const auto judge = number_judge_of_rows(data);
  Predictions predictions;
  predictions.emplace("logits", reals({2, 1}, {1.5, 1.5}));
  judge->add(0, 2, predictions);
  expect_scores(*judge, {{"mse", 0.25}, {"mae", 0.5}});
}

/// Numbers of scikit-learn.
TEST(LabelSetJudge, CountsLabelsAsScikitLearnDoes) {
  const Dataset data =
      rows_labelled({{1, 0, 0}, {1, 1, 0}, {0, 0, 0}, {}, {0, 1, 0}, {1, 0, 0}}, {"a", "b", "c"});
  const auto judge = label_set_judge_of_rows(data);
  judge->keep_probabilities();
  Predictions predictions;
  predictions.emplace(
      "logits", reals({6, 3}, {1, -1, -1, -1, 1, 1, -1, -1, -1, -1, -1, -1, 1, 2, 0, 3, -1, -1}));
  judge->add(0, 6, predictions);
  expect_scores(
      *judge,
      {{"f1_micro", 0.7272727272727273}, {"f1_macro", 0.5555555555555555}, {"accuracy", 0.6}});
  const PredictionTable table = judge->table();
  EXPECT_EQ(join(table.columns, "|"), "row|label|prediction|p(a)|p(b)|p(c)");
  EXPECT_EQ(join(table.rows[1], "|"), "1|a,b|b,c|0.268941|0.731059|0.731059");
  EXPECT_EQ(join(table.rows[2], "|"), "2|||0.268941|0.268941|0.268941");
}

}  // namespace
}  // namespace tessera
