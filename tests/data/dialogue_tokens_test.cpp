// Dialogues as tokens, and which of them are answers, against transformers
// (tools/golden/chat_tokens.py).
#include "tessera/data/dialogue_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/dialogue_rows.h"
#include "tessera/data/encoded_lines.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/tokenizer.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

const std::string kChatGolden = "tests/golden/chat/";

Tokenizer chat_tokenizer(const std::string& name, const std::string& source) {
  TokenizerFiles files = Tokenizer::load(repo_file(kChatGolden + name)).files();
  if (!source.empty()) files["chat_template.jinja"] = source;
  return Tokenizer::of(files, name);
}

std::string template_at(const std::string& name) {
  return read_file(repo_file(kChatGolden + name));
}

Dialogue parsed(const std::string& line) {
  static const std::string kPath = "chat.jsonl";
  return dialogue_of(line, {"messages", ""}, {&kPath, 7});
}

TEST(DialogueTokens, AreThoseOfTransformers) {
  const Json rows = Json::parse(template_at("tokens.json")),
             dialogues = Json::parse(template_at("dialogues.json"));
  ASSERT_GT(rows.size(), 30u);
  for (const Json& row : rows) {
    SCOPED_TRACE(row["tokenizer"].get<std::string>() + ", " + row["template"].get<std::string>() +
                 ", " + row["dialogue"].get<std::string>());
    const Tokenizer tokenizer = chat_tokenizer(row["tokenizer"], template_at(row["template"]));
    const DialogueEncoder encoder(tokenizer, DialogueLoss::Answers, day_of("2024-07-26"));
    const Dialogue dialogue = parsed(dialogues[row["dialogue"].get<std::string>()].dump());
    const DialogueTokens made = encoder.encode(dialogue);
    EXPECT_EQ(made.ids, row["ids"].get<std::vector<std::int32_t>>());
    EXPECT_EQ(made.counts, row["counts"].get<std::vector<std::uint8_t>>());
    const DialogueEncoder all(tokenizer, DialogueLoss::All, day_of("2024-07-26"));
    EXPECT_EQ(all.encode(dialogue).counts, std::vector<std::uint8_t>(made.ids.size(), 1));
  }
}

std::string error_of(const auto& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(DialogueTokens, RefusesAnswersThatAreNotFound) {
  const auto error = [](const std::string& source, const std::string& line) {
    return error_of([&] {
      const Tokenizer tokenizer = chat_tokenizer("byte_level", source);
      DialogueEncoder(tokenizer, DialogueLoss::Answers, day_of("2024-07-26")).encode(parsed(line));
    });
  };
  const std::string two = R"({"messages": [{"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
    {"role": "assistant", "content": "d"}]})";
  const std::string instead =
      "; put {% generation %} and {% endgeneration %} around what the model writes into "
      "chat_template.jinja, or learn all tokens with --chat-loss all";
  EXPECT_EQ(error("{{ messages | length }}{{ messages[-1].content }}", two),
            "answers are not found: the text up to message 1, ready for an answer, does not begin "
            "the text with message 2, but goes on with \"1a\" where that has \"2b\"" +
                instead);
  EXPECT_EQ(error("{% for m in messages %}{{ m.content }}{% if loop.last and m.role == "
                  "'assistant' %}.{% endif %}{% endfor %}",
                  two),
            "answers are not found: the text of message 2 changes when others follow it" + instead);
  EXPECT_NE(error("", two).find("the tokenizer has no chat template: there is neither "
                                "chat_template.jinja beside it, nor chat_template in its "
                                "tokenizer_config.json"),
            std::string::npos);
  EXPECT_EQ(
      error(template_at("chatml.jinja"), R"({"messages": [{"role": "user", "content": "a"}]})"),
      "no message of the assistant has a token to learn; give it an answer, or learn all "
      "tokens with --chat-loss all");
  EXPECT_EQ(error("{{ raise_exception('no ' + messages[0].role) }}", two),
            "chat_template.jinja refuses the dialogue: no user");
  EXPECT_EQ(error("{{ messages[0].role + messages[0].content }}",
                  R"({"messages": [{"role": "assistant", "content": "a"}]})"),
            "message 1 is one of the assistant, and the template writes nothing before it: "
            "chat_template.jinja, line 1, column 15: 'role' of something that is not defined; "
            "begin with one of the user, or give --chat-loss all");
}

// Phi-3's template: the end of the text stands behind the last message alone.
TEST(DialogueTokens, WhatEndsTheTextBelongsToTheLastAnswer) {
  const Tokenizer tokenizer = chat_tokenizer(
      "byte_level",
      "{% for m in messages %}{{ '<|im_start|>' + m.content + '<|im_end|>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>' }}{% else %}{{ eos_token }}{% endif %}");
  const DialogueTokens made =
      DialogueEncoder(tokenizer, DialogueLoss::Answers, day_of("2024-07-26")).encode(parsed(R"({
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                     {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})"));
  std::vector<std::string> learned;
  for (std::size_t i = 0; i < made.ids.size(); ++i) {
    if (made.counts[i] == 0) continue;
    if (i == 0 || made.counts[i - 1] == 0) learned.emplace_back();
    learned.back() += tokenizer.decode({&made.ids[i], 1});
  }
  const std::string end = *tokenizer.token(*tokenizer.special_tokens().eos);
  EXPECT_EQ(learned, (std::vector<std::string>{"b<|im_end|>", "d<|im_end|>" + end}));
}

TEST(DialogueTokens, ATokenOnBothSidesOfAnAnswersBeginningBelongsToIt) {
  // "re" is a token, and the answer begins within it.
  const Tokenizer tokenizer =
      chat_tokenizer("byte_level", "{% for m in messages %}{{ m.content }}{% endfor %}");
  const DialogueEncoder encoder(tokenizer, DialogueLoss::Answers, day_of("2024-07-26"));
  const DialogueTokens made = encoder.encode(parsed(
      R"({"messages": [{"role": "user", "content": "Whe"}, {"role": "assistant", "content": "re is"}]})"));
  const auto whole = tokenizer.encode("Where is", {.add_special_tokens = false});
  EXPECT_EQ(made.ids, whole);
  ASSERT_LT(whole.size(), tokenizer.encode("Whe", {.add_special_tokens = false}).size() +
                              tokenizer.encode("re is", {.add_special_tokens = false}).size());
  const SpannedIds placed = tokenizer.encode_spans("Where is");
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(made.counts[i], placed.spans[i].end > 3) << i;
}

TEST(Dialogues, FormsOfLines) {
  const std::string path = "chat.jsonl";
  const auto of = [&](const std::string& line, const DialogueKeys& keys) {
    return dialogue_of(line, keys, {&path, 7});
  };
  const DialogueKeys messages{"messages", ""}, shared{"conversations", ""},
      pair{"prompt", "completion"};
  EXPECT_EQ(
      of(R"({"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "a"},
                   {"from": "gpt", "value": "b"}, {"from": "observation", "value": "c"}]})",
         shared)
          .messages.dump(),
      R"([{"role":"system","content":"s"},{"role":"user","content":"a"},)"
      R"({"role":"assistant","content":"b"},{"role":"tool","content":"c"}])");
  const Dialogue of_pair = of(R"({"prompt": "a", "completion": "b"})", pair);
  EXPECT_EQ(of_pair.messages.dump(),
            R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])");
  EXPECT_EQ(of_pair.prompt, 1u);
  EXPECT_EQ(
      of(R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
                   "completion": [{"role": "assistant", "content": "c"}]})",
         pair)
          .prompt,
      2u);
  EXPECT_EQ(of(R"({"messages": [{"role": "user", "content": "a"}], "tools": "[{\"name\": 1}]"})",
               messages)
                .tools.dump(),
            R"([{"name":1}])");
  EXPECT_EQ(
      of(R"({"system": "s", "conversations": "[{\"from\": \"human\", \"value\": \"a\"}]"})", shared)
          .messages.dump(),
      R"([{"role":"system","content":"s"},{"role":"user","content":"a"}])");
  EXPECT_EQ(of(R"({"system": "t", "conversations": [{"from": "system", "value": "s"}]})", shared)
                .messages.dump(),
            R"([{"role":"system","content":"s"}])");
  const struct {
    const char *line, *message;
  } kCases[] = {
      {"{", "this is not JSON; give a JSON object in each line"},
      {"[]", "this is not a JSON object"},
      {R"({"a": 1})", "there is no key \"messages\""},
      {R"({"messages": "a"})",
       "\"messages\" is not a list of messages, like [{\"role\": \"user\", \"content\": "
       "\"Hello\"}]"},
      {R"({"messages": []})",
       "\"messages\" is not a list of messages, like [{\"role\": \"user\", \"content\": "
       "\"Hello\"}]"},
      {R"({"messages": [1]})", "message 1 is not an object"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"content": "b"}]})",
       "message 2 has no \"role\"; give each message a role and a content"},
      {R"({"messages": [{"role": 3, "content": "a"}]})",
       "the role of message 1 is not a text; give \"user\", \"assistant\" ..."},
      {R"({"messages": [{"role": "user"}]})", "message 1 has no \"content\"; give it a text"},
      {R"({"messages": [{"role": "user", "content": 3}]})",
       "\"content\" of message 1 is not a text"},
      {R"({"messages": [{"from": "bard", "value": "a"}]})",
       "message 1 is from 'bard', which is none of system, human, user, gpt, assistant, "
       "observation, tool"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "Assistant", "content": "b"}]})",
       "the role of message 2 is 'Assistant', which templates do not know; give \"assistant\""},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": 3})",
       "\"tools\" is not a list of objects"},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": ["f"]})",
       "\"tools\" is not a list of objects"},
      {R"({"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": "f"})",
       "\"chat_template_kwargs\" is not an object, like {\"enable_thinking\": false}"},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(error_of([&] { of(c.line, messages); }),
              std::string("'chat.jsonl' line 7: ") + c.message)
        << c.line;
}

TEST(Dialogues, AreFoundInTheFirstLine) {
  const TestFolder folder;
  const auto keys = [&](const std::string& bytes) {
    std::ofstream(folder / "a.jsonl") << bytes;
    const auto found = find_dialogue_keys(folder / "a.jsonl");
    return found ? found->messages + "/" + found->completion : "none";
  };
  EXPECT_EQ(keys("\n{\"messages\": [{\"role\": \"user\"}]}\n"), "messages/");
  EXPECT_EQ(keys("{\"messages\": \"[{}]\"}\n"), "messages/");
  EXPECT_EQ(keys("{\"messages\": []}\n"), "messages/");  // an error where it is read
  EXPECT_EQ(keys("{\"prompt\": 1, \"completion\": 2}\n"), "prompt/completion");
  EXPECT_EQ(keys("{\"messages\": \"hello\"}\n"), "none");
  EXPECT_EQ(keys("[{\"messages\": [{}]}]\n"), "none");
  EXPECT_TRUE(is_list_of_dialogues(folder / "a.jsonl"));
  EXPECT_EQ(keys("[\n  {\"id\": 1,\n   \"conversations\": [\n {"), "none");
  EXPECT_TRUE(is_list_of_dialogues(folder / "a.jsonl"));
  EXPECT_EQ(keys("{\"text\": \"[{messages:[{\"}\n"), "none");
  EXPECT_FALSE(is_list_of_dialogues(folder / "a.jsonl"));
}

// Files of several blocks are encoded by several threads.
TEST(Dialogues, OfAFileStayInOrder) {
  const TestFolder folder;
  const Tokenizer tokenizer = chat_tokenizer("byte_level", template_at("chatml.jinja"));
  const DialogueEncoder encoder(tokenizer, DialogueLoss::Answers, day_of("2024-07-26"));
  const auto line = [](int i) {
    return text(R"({"messages": [{"role": "user", "content": "question )", i, std::string(300, 'q'),
                R"("}, {"role": "assistant", "content": "answer )", i, R"("}]})");
  };
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> counts;
  {
    std::ofstream file(folder / "a.jsonl");
    for (int i = 0; i < 2000; ++i) {
      file << line(i) << "\n";
      const DialogueTokens made = encoder.encode(parsed(line(i)));
      ids.insert(ids.end(), made.ids.begin(), made.ids.end());
      counts.insert(counts.end(), made.counts.begin(), made.counts.end());
    }
  }
  RowsChoice choice{.paths = {folder / "a.jsonl"}, .columns = {"messages"}, .held_out = 0.1};
  choice.dialogues.day = day_of("2024-07-26");
  const Vocabulary vocabulary = Vocabulary::tokenizer(tokenizer);
  const Dataset data = load_dialogues(choice, vocabulary);
  EXPECT_EQ(data.texts().rows.train, 1800);
  EXPECT_TRUE(std::ranges::equal(data.texts().tokens.all(), ids));
  EXPECT_EQ(data.texts().counts, counts);
  EXPECT_EQ(data.digest, lines_digest(choice));
  {
    std::ofstream file(folder / "a.jsonl");
    for (int i = 0; i < 2000; ++i) file << (i == 1500 || i == 1990 ? "{}" : line(i)) << "\n";
  }
  EXPECT_EQ(error_of([&] { load_dialogues(choice, vocabulary); }),
            text("'", folder / "a.jsonl", "' line 1501: there is no key \"messages\""));
}

TEST(Dialogues, DaysOfTemplates) {
  const std::tm day = day_of("2024-02-29");
  EXPECT_EQ(day.tm_wday, 4);
  EXPECT_EQ(day.tm_yday, 59);
  for (const char* const wrong : {"", "2023-02-29", "2024-2-9", "26 Jul 2024", "2024-07-26x"})
    EXPECT_EQ(error_of([&] { day_of(wrong); }),
              std::string("chat-date '") + wrong + "' is no day; give one like 2024-07-26");
}

}  // namespace

}  // namespace tessera
