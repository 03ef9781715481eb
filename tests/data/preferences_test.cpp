/// Preferences in JSON lines: which forms are read, what is the prompt, what is refused.
#include "tessera/data/preferences.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

Preference parsed_preference(const std::string& line) {
  static const std::string kPath = "pairs.jsonl";
  return preference_of(line, {&kPath, 7});
}

struct TextCase {
  const char *name, *line, *prompt, *chosen, *rejected;
};

const TextCase kTexts[] = {
    {"a prompt of its own", R"({"prompt": "Q: ", "chosen": "yes", "rejected": "no"})", "Q: ", "yes",
     "no"},
    {"the prompt is what both begin with", R"({"chosen": "Q: yes", "rejected": "Q: no"})",
     "Q:", " yes", " no"},
    {"the blank before an answer is a part of it", R"({"chosen": "a b", "rejected": "a c"})", "a",
     " b", " c"},
    {"characters stay whole", "{\"chosen\": \"aé\", \"rejected\": \"aè\"}", "a", "é", "è"},
    {"one answer goes on where the other ends",
     R"({"prompt": "", "chosen": "ab", "rejected": "a"})", "", "ab", "a"},
};

TEST(Preferences, AreTexts) {
  for (const TextCase& c : kTexts) {
    SCOPED_TRACE(c.name);
    const Preference made = parsed_preference(c.line);
    for (const auto& [answered, wanted] :
         {std::pair{made.chosen, c.chosen}, {made.rejected, c.rejected}}) {
      const auto& text = std::get<AnsweredText>(answered);
      EXPECT_EQ(text.text.substr(0, text.prompt), c.prompt);
      EXPECT_EQ(text.text.substr(text.prompt), wanted);
    }
    EXPECT_FALSE(made.same);
  }
}

constexpr const char* kUser = R"({"role": "user", "content": "Q"})";

std::string said(const char* content) {
  return text(R"({"role": "assistant", "content": ")", content, R"("})");
}

TEST(Preferences, AreMessages) {
  const std::string yes = said("yes"), no = said("no");
  const std::string lines[] = {
      text(R"({"prompt": [)", kUser, R"(], "chosen": [)", yes, R"(], "rejected": [)", no, "]}"),
      text(R"({"chosen": [)", kUser, ",", yes, R"(], "rejected": [)", kUser, ",", no, "]}"),
      text(R"({"prompt": "Q", "chosen": [)", kUser, ",", yes, R"(], "rejected": [)", kUser, ",", no,
           "]}"),
      text(R"({"prompt": "Q", "chosen": [)", yes, R"(], "rejected": [)", no, "]}")};
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    const Preference made = parsed_preference(line);
    const auto &chosen = std::get<Dialogue>(made.chosen),
               &rejected = std::get<Dialogue>(made.rejected);
    EXPECT_EQ(chosen.prompt, 1u);
    EXPECT_EQ(rejected.prompt, 1u);
    ASSERT_EQ(chosen.messages.size(), 2u);
    EXPECT_EQ(chosen.messages[0]["content"], "Q");
    EXPECT_EQ(chosen.messages[1]["content"], "yes");
    EXPECT_EQ(rejected.messages[1]["content"], "no");
  }
}

/// An answer that is chosen and rejected teaches nothing; TRL takes it too.
TEST(Preferences, MayBeTheSame) {
  EXPECT_TRUE(parsed_preference(R"({"prompt": "Q", "chosen": "a", "rejected": "a"})").same);
}

TEST(Preferences, RefusesWithFileAndLine) {
  const std::pair<std::string, std::string> kBad[] = {
      {R"({"prompt": "Q", "chosen": "a"})", "there is no key \"rejected\"; a preference has "},
      {R"({"prompt": "Q", "chosen": "", "rejected": "a"})",
       "the answer in \"chosen\" is empty; give it a text"},
      {R"({"chosen": "a", "rejected": "a b"})",
       "the answer in \"chosen\" is empty: without \"prompt\", what "},
      {R"({"prompt": "Q", "chosen": "a", "rejected": 3})", "\"rejected\" is not a text or a list"},
      {text(R"({"chosen": "a", "rejected": [)", kUser, "]}"), "one is a text and one a list"},
      {text(R"({"prompt": [)", kUser, R"(], "chosen": "a", "rejected": "b"})"),
       "\"prompt\" is a list of messages and \"chosen\" a text"},
      {R"({"prompt": 1, "chosen": "a", "rejected": "b"})", "\"prompt\" is not a text or a list"},
      {text(R"({"prompt": [)", kUser, R"(], "chosen": [)", said(""), R"(], "rejected": [)",
            said("b"), "]}"),
       "the answer in \"chosen\" is empty"},
      {text(R"({"chosen": [)", kUser, R"(], "rejected": [)", kUser, ",", said("b"), "]}"),
       "the answer in \"chosen\" is empty: without \"prompt\""},
      {R"({"chosen": [{"role": "user"}], "rejected": [{"role": "user"}]})", "has no \"content\""},
      {"[1]", "this is not a JSON object"},
      {"{", "line 7: "}};
  for (const auto& [line, said] : kBad) {
    SCOPED_TRACE(line);
    try {
      parsed_preference(line);
      FAIL();
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("'pairs.jsonl' line 7: "), message.npos) << message;
      EXPECT_NE(message.find(said), message.npos) << message;
    }
  }
}

}  // namespace
}  // namespace tessera
