/// Files of questions.

#include "tessera/data/questions.h"

#include <gtest/gtest.h>

#include <string>

#include "files/test_data.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

/// "id question [context] answer@byte": questions one behind another.
std::string questions_text(const Questions& questions) {
  std::string out;
  for (const Question& q : questions.all) {
    out += text(out.empty() ? "" : " | ", q.id, " ", q.text, " [",
                questions.contexts[static_cast<std::size_t>(q.context)], "]");
    for (const Answer& answer : q.answers) out += text(" ", answer.text, "@", answer.begin);
  }
  return out;
}

struct QuestionCase {
  const char *name, *bytes, *questions;
};

std::string squad(const char* qas) {
  return text(R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": )",
              "\"\u00e9t\u00e9 in Paris\", \"qas\": ", qas, "}]}]}");
}

TEST(Questions, OfSquadAreRead) {
  EXPECT_EQ(questions_text(parse_questions(
                squad(R"([{"id": "7a", "question": "where?", "answers": [)"
                      R"({"text": "Paris", "answer_start": 7}, {"text": "in Paris", )"
                      R"("answer_start": 4}]}, {"id": 8, "question": "who?", "answers": [], )"
                      R"("is_impossible": true}, {"question": "why?", "answers": [)"
                      R"({"text": "in", "answer_start": 4}], "is_impossible": true}])"),
                "a.json")),
            "7a where? [\u00e9t\u00e9 in Paris] Paris@9 in Paris@6 | 8 who? [\u00e9t\u00e9 in "
            "Paris] | data[0].paragraphs[0].qas[2] why? [\u00e9t\u00e9 in Paris]");
}

TEST(Questions, OfJsonLinesAreRead) {
  EXPECT_EQ(questions_text(parse_questions(
                R"({"id": "1", "question": "q", "context": "a b", "answers": {"text": ["b"], )"
                R"("answer_start": [2]}})"
                "\n\n"
                R"({"id": "2", "question": "r", "context": "a b", "answers": {"text": [], )"
                R"("answer_start": []}})"
                "\n"
                R"({"question": "s", "context": "c"})",
                "a.jsonl")),
            "1 q [a b] b@2 | 2 r [a b] | line 4 s [c]");
}

TEST(Questions, AreRefusedWithTheirPlace) {
  const QuestionCase cases[] = {
      {"nothing there", "",
       "'a' byte 1: this is not JSON; give a SQuAD file, or JSON lines with id, question, "
       "context and answers"},
      {"a number beyond f64", "{\"data\": 1e309}",
       "'a' has a number that is too large; make it smaller"},
      {"another form", "{\"data\": 3}", "'a' the file has 3 as \"data\" where a list belongs"},
      {"no question", "{\"data\": []}",
       "'a' has no question; give a SQuAD file, or JSON lines with id, question, context and "
       "answers"},
      {"no context", "{\"data\": [{\"paragraphs\": [{}]}]}",
       "'a' data[0].paragraphs[0] has no \"context\"; give a SQuAD file, or JSON lines with id, "
       "question, context and answers"},
      {"an answer elsewhere",
       R"({"id": "1", "question": "q", "context": "a bc d", "answers": {"text": ["d"], )"
       R"("answer_start": [2]}})",
       "'a' line 1 has the answer 'd' at character 2, where the context has 'b'; answer_start "
       "counts "
       "characters from 0"},
      {"behind the end",
       R"({"id": "1", "question": "q", "context": "a", "answers": {"text": ["d"], )"
       R"("answer_start": [2]}})",
       "'a' line 1 has the answer 'd' at character 2, where the context has nothing; "
       "answer_start counts characters from 0"},
      {"lists of other lengths",
       R"({"question": "q", "context": "a", "answers": {"text": ["a"], "answer_start": []}})",
       "'a' line 1 has 1 text of answers and 0 answer_starts; give as many of both"},
      {"a line that is none", "{\"question\": \"q\", \"context\": \"a\"}\n7",
       "'a' line 2 is not a JSON object; give an object with id, question, context and answers in "
       "each line"},
      {"not UTF-8", "{\"\xFF\"", "'a' byte 3 is not UTF-8; convert the file to UTF-8"},
  };
  for (const QuestionCase& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(message_of([&] { (void)parse_questions(c.bytes, "a"); }), c.questions);
  }
}

}  // namespace
}  // namespace tessera
