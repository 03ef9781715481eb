/// Questions as tokens: windows of long texts, and where answers are in them.

#include "tessera/data/question_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/files/file.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

/// A question of so many tokens about a text of so many.
EncodedQuestions one_question(std::int64_t question, std::int64_t text, TokenRange answer = {}) {
  EncodedQuestions out;
  EncodedQuestions::Context& context = out.contexts.emplace_back();
  context.tokens.ids.resize(static_cast<std::size_t>(text));
  EncodedQuestions::Entry& entry = out.all.emplace_back();
  entry.ids.resize(static_cast<std::size_t>(question));
  entry.answer = answer;
  entry.question.place = "line 1 of 'a'";
  out.train = 1;
  return out;
}

/// What `tokenizers` cuts with the strategy only_second: tools/golden/token_spans.py.
TEST(QuestionWindows, AreThoseOfTheReference) {
  const auto golden = nlohmann::json::parse(read_file(repo_file("tests/golden/token_spans.json")));
  for (const auto& c : golden["windows"]) {
    SCOPED_TRACE(c.dump());
    const std::int64_t question = c["question"];
    const auto windows = question_windows(
        one_question(question, c["text"]), DataPart::Train,
        {.context = c["context"], .doc_stride = c["doc_stride"], .frame = text_frame(1, 2, false)});
    std::vector<std::vector<std::int64_t>> found;
    for (const QuestionWindow& window : windows) {
      found.push_back({window.first, window.tokens});
      EXPECT_EQ(window.at, question + 2) << "behind [CLS], the question and [SEP]";
    }
    EXPECT_EQ(found, c["windows"].get<decltype(found)>());
  }
}

TEST(QuestionWindows, NeedRoom) {
  EXPECT_EQ(message_of([] {
              (void)question_windows(
                  one_question(6, 20), DataPart::Train,
                  {.context = 13, .doc_stride = 4, .frame = text_frame(1, 2, false)});
            }),
            "the question at line 1 of 'a' has 6 tokens, leaving room for 4 of its text's 20 "
            "in a context of 13, and doc-stride is 4; give a context of 14 or more, or a shorter "
            "doc-stride");
}

TEST(QuestionWindows, AnAnswerThatIsNotWholeInOneIsAtCls) {
  const EncodedQuestions questions = one_question(1, 10, {3, 5});
  struct Case {
    QuestionWindow window;
    TokenRange answer;
  };
  for (const Case& c : {Case{{0, 0, 6, 3}, {6, 8}}, Case{{0, 0, 5, 3}, {0, 0}},
                        Case{{0, 3, 3, 4}, {4, 6}}, Case{{0, 4, 6, 3}, {0, 0}}})
    EXPECT_EQ(answer_in(questions, c.window), c.answer) << c.window.first;
  EXPECT_EQ(answer_in(one_question(1, 10), {0, 0, 10, 3}), (TokenRange{0, 0}));
}

Dataset questions_of(const std::string& bytes, double held_out) {
  const TestFolder folder;
  std::ofstream(folder / "a.jsonl") << bytes;
  return load_questions({.paths = {folder / "a.jsonl"}, .held_out = held_out},
                        VocabularyChoice(VocabularyKind::Characters));
}

TEST(QuestionSamples, AreQuestionAndText) {
  const Dataset data = questions_of(
      R"({"question": " ab", "context": "abcd", "answers": {"text": ["bc"], "answer_start": [1]}})"
      "\n"
      R"({"question": "b", "context": "cab", "answers": {"text": [], "answer_start": []}})",
      0);
  // The new line, the blank, a, b, c, d: 0 to 5.
  EXPECT_EQ(data.vocabulary.size(), 6);
  EXPECT_TRUE(data.questions()->some_without);
  EXPECT_EQ(data.questions()->all[0].answer, (TokenRange{1, 2}));
  const auto samples = question_samples(
      data, DataPart::Train,
      {.context = 8, .doc_stride = 1, .frame = text_frame(7, 8, false), .pad = 6, .types = true});
  ASSERT_EQ(samples->size(), 3) << "windows of 3 and 2 tokens, and one of 3";
  std::map<std::string, std::vector<std::int32_t>> inputs;
  BatchInputs batch("test");
  for (const char* const name : {"ids", "types", "mask", "start", "end"}) {
    const bool one = name == std::string("start") || name == std::string("end");
    std::vector<std::int32_t>& values = inputs[name];
    values.resize(one ? 3 : 24);
    batch.add(name, {DType::I32, one ? Shape{3} : Shape{3, 8}, {}},
              std::as_writable_bytes(std::span(values)).data());
  }
  samples->fill(0, 3, batch);
  std::vector<std::vector<std::int32_t>> rows;
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<std::int32_t>& row = rows.emplace_back();
    for (const char* const name : {"ids", "types", "mask"})
      row.insert(row.end(), inputs[name].begin() + static_cast<std::ptrdiff_t>(8 * i),
                 inputs[name].begin() + static_cast<std::ptrdiff_t>(8 * i + 8));
    row.push_back(inputs["start"][i]);
    row.push_back(inputs["end"][i]);
  }
  std::ranges::sort(rows);
  using Rows = std::vector<std::vector<std::int32_t>>;
  EXPECT_EQ(rows,
            (Rows{{7, 2, 3, 8, 2, 3, 4, 8, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 6},
                  {7, 2, 3, 8, 4, 5, 8, 6, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0},
                  {7, 3, 8, 4, 2, 3, 8, 6, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0}}));
}

}  // namespace
}  // namespace tessera
