/// What encoders get around a text is what its tokenizer says, or the tokenizer is refused.

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/models/encoder.h"
#include "tessera/models/masked_lm.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {
namespace {

using nlohmann::json;

/// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, a 5, b 6, c 7, d 8, [X] 9
Vocabulary vocabulary_with(const json& post_processor, const json& settings = json::object(),
                           const json& truncation = nullptr) {
  json vocabulary, added = json::array();
  for (const char* token :
       {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "[X]"}) {
    const std::size_t id = vocabulary.size();
    vocabulary[token] = id;
    if (token[0] == '[') added.push_back({{"id", id}, {"content", token}, {"special", true}});
  }
  const json document = {
      {"version", "1.0"},
      {"truncation", truncation},
      {"added_tokens", added},
      {"pre_tokenizer", {{"type", "Whitespace"}}},
      {"post_processor", post_processor},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "[UNK]"}}}};
  return Vocabulary::tokenizer(Tokenizer::of(
      {{"tokenizer.json", document.dump()}, {"tokenizer_config.json", settings.dump()}}, "t"));
}

/// "[X] A:1 [SEP]": a template of tokens and texts with their types.
json items_of(const std::string& form) {
  json out = json::array();
  for (const std::string& word : split(form, ' ')) {
    const std::string name = word.substr(0, word.find(':'));
    const int type = word.find(':') == std::string::npos ? 0 : word.back() - '0';
    const char* const kind = name == "A" || name == "B" ? "Sequence" : "SpecialToken";
    out.push_back({{kind, {{"id", name}, {"type_id", type}}}});
  }
  return out;
}
json frame_json(const std::string& single, const std::string& pair) {
  json tokens;
  for (const auto& [token, id] :
       {std::pair{"[CLS]", 2}, std::pair{"[SEP]", 3}, std::pair{"[X]", 9}})
    tokens[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  return {{"type", "TemplateProcessing"},
          {"single", items_of(single)},
          {"pair", items_of(pair)},
          {"special_tokens", tokens}};
}
const json kUsual = {{"type", "BertProcessing"}, {"cls", {"[CLS]", 2}}, {"sep", {"[SEP]", 3}}};

/// "2 5 3 | 2 5 3 6 3 of 00011": samples of one text and of two, with their types; or the fault.
std::string samples_with(const Vocabulary& vocabulary, std::int64_t room = 20,
                         const MaskedModel& model = {}) {
  try {
    const TextFrame frame = encoder_frame(model, vocabulary).frame;
    const auto first = vocabulary.encode("a b c d"), second = vocabulary.encode("a b d");
    const std::array<std::span<const std::int32_t>, 2> texts = {first, second};
    const FramedTexts one = framed(frame, std::span(texts).first(1), room),
                      two = framed(frame, texts, room);
    const auto text_of = [](const std::vector<std::int32_t>& ids, const char* between) {
      std::vector<std::string> all;
      for (const std::int32_t id : ids) all.push_back(text(id));
      return join(all, between);
    };
    return text(text_of(one.ids, " "), " | ", text_of(two.ids, " "), " of ",
                text_of(two.types, ""));
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Data);
    return error.what();
  }
}

TEST(EncoderFrame, IsThatOfThePostProcessor) {
  EXPECT_EQ(samples_with(vocabulary_with(kUsual)),
            "2 5 6 7 8 3 | 2 5 6 7 8 3 5 6 8 3 of 0000001111");
  EXPECT_EQ(samples_with(vocabulary_with(frame_json("[X] A [SEP]", "[X] B [SEP] A:1 [CLS]"))),
            "9 5 6 7 8 3 | 9 5 6 8 3 5 6 7 8 2 of 0000011110");
  const json bytes = {{"type", "ByteLevel"}, {"trim_offsets", true}};
  EXPECT_EQ(samples_with(vocabulary_with(
                {{"type", "Sequence"}, {"processors", {bytes, frame_json("A [X]", "A [X] B")}}})),
            "5 6 7 8 9 | 5 6 7 8 9 5 6 8 of 00000000");
}

/// PreTrainedTokenizerFast has the roles that its settings name.
TEST(EncoderFrame, PadsWithTheTokenOfTheTokenizer) {
  json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"pad_token", "[PAD]"}};
  EXPECT_EQ(encoder_frame({}, vocabulary_with(kUsual, settings)).pad, 0);
  settings["pad_token"] = "[X]";
  EXPECT_EQ(encoder_frame({}, vocabulary_with(kUsual, settings)).pad, 9);
}

TEST(EncoderFrame, HasTypesUnlessTheModelGetsNone) {
  const auto with = [](const json& names) {
    return samples_with(vocabulary_with(kUsual, {{"model_input_names", names}}));
  };
  EXPECT_EQ(with({"input_ids", "token_type_ids", "attention_mask"}),
            "2 5 6 7 8 3 | 2 5 6 7 8 3 5 6 8 3 of 0000001111");
  EXPECT_EQ(with({"input_ids", "attention_mask"}),
            "2 5 6 7 8 3 | 2 5 6 7 8 3 5 6 8 3 of 0000000000");
}

TEST(EncoderFrame, RefusesWhatIsNoSample) {
  const auto expect = [](const json& post_processor, const char* words) {
    const std::string said = samples_with(vocabulary_with(post_processor));
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  expect(nullptr, "the tokenizer's post-processor adds no tokens around a text");
  expect(frame_json("A", "A B:1"), "adds no tokens around a text");
  expect(frame_json("[CLS]", "[CLS] A B"), "has $A 0 times in its template of one text");
  expect(frame_json("[CLS] A A", "[CLS] A B"), "has $A 2 times in its template of one text");
  expect(frame_json("[CLS] A", "[CLS] A A B"), "has $A 2 times in its template of two texts");
  expect(frame_json("[CLS] A", "[CLS] A"), "has $B 0 times in its template of two texts");
  const json types = frame_json("[CLS] A", "[CLS] A B:2");
  expect(types, "gives tokens the type 2, and the model's table has types 0 and 1");
  // Without a table of types they do not matter.
  EXPECT_EQ(samples_with(vocabulary_with(types), 20, {.types = 1, .doubled_separator = true}),
            "2 5 6 7 8 | 2 5 6 7 8 5 6 8 of 00000222");
}

// As transformers 5.24 with truncation=True, max_length=4, and 7 of two texts.
TEST(EncoderFrame, CutsTheSideThatTheTokenizerSays) {
  const json left = {{"truncation_side", "left"}}, right = {{"truncation_side", "right"}},
             of_document = {{"direction", "Left"}, {"max_length", 4}};
  const auto four = [](const Vocabulary& of) { return samples_with(of, 4).substr(0, 7); };
  const auto seven = [](const Vocabulary& of) { return samples_with(of, 7).substr(14, 13); };
  EXPECT_EQ(four(vocabulary_with(kUsual)), "2 5 6 3");
  EXPECT_EQ(seven(vocabulary_with(kUsual)), "2 5 6 3 5 6 3");
  for (const Vocabulary& of :
       {vocabulary_with(kUsual, left), vocabulary_with(kUsual, json::object(), of_document),
        vocabulary_with(kUsual, left, {{"direction", "Right"}})}) {
    EXPECT_EQ(four(of), "2 7 8 3");
    EXPECT_EQ(seven(of), "2 7 8 3 6 8 3");
  }
  EXPECT_EQ(four(vocabulary_with(kUsual, right, of_document)), "2 5 6 3");
  try {
    vocabulary_with(kUsual, {{"truncation_side", "up"}});
    ADD_FAILURE() << "no side is up";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("truncation_side is 'up'"), std::string::npos);
  }
}

/// What a task says of data with this vocabulary.
std::string fault_of_task(std::string_view task, const Vocabulary& vocabulary,
                          std::string_view family = "bert") {
  ModelConfig config;
  config.family = FamilyRef(family);
  config.special_tokens = "0,0,2";  // [CLS] ends a text
  config.task = task;
  config.context = 8;
  config.vocabulary = vocabulary.size();
  Dataset data{vocabulary, Texts{TokenStream::none(), {}, {}}, ""};
  try {
    task_of(config).train_samples(data, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EncoderFrame, TasksRefuseFramesThatTheyDoNotFollow) {
  const auto expect = [](std::string_view task, const Vocabulary& vocabulary, const char* words) {
    const std::string said = fault_of_task(task, vocabulary);
    EXPECT_NE(said.find(words), std::string::npos) << task << ": " << said;
  };
  const Vocabulary left = vocabulary_with(kUsual, {{"truncation_side", "left"}}),
                   other = vocabulary_with(frame_json("[X] A [SEP]", "A [SEP] B"));
  expect(kTokenClassification, left, "samples of token_classification are truncated at the end");
  expect(kQuestionAnswering, left, "samples of question_answering are truncated at the end");
  expect(kQuestionAnswering, other, "begins a pair with a text");
  expect(kPretraining, other, "does not put [CLS] A [SEP] B [SEP] around two texts");
}

TEST(EncoderFrame, ModelsThatWriteTextsRefuseThoseThatHaveNoEnd) {
  const std::string said = fault_of_task(kSequenceClassification, vocabulary_with(kUsual), "t5");
  EXPECT_NE(said.find("the tokenizer puts no end token (2) behind the texts of a sample"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace tessera
