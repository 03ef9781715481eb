#include "tessera/tokenizers/vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(Vocabulary, CharactersAreNumberedByCodePoint) {
  const Vocabulary v = Vocabulary::characters("b\u00e9a\nb\U0001F600");
  EXPECT_EQ(v.size(), 5);
  EXPECT_EQ(v.encode("\nab\u00e9\U0001F600"), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(v.decode(Ids{4, 3, 2}), "\U0001F600\u00e9b");
}

/// [CLS] and [SEP] of BERT are <s> and </s> of RoBERTa.
TEST(Vocabulary, TokenizersMayHaveTheTokensOfPairs) {
  TokenizerFiles files = {
      {"vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "a": 3, "<mask>": 4, "b": 5})"},
      {"merges.txt", ""}};
  const auto tokens = [&](const char* config) {
    files["tokenizer_config.json"] = config;
    return Vocabulary::tokenizer(Tokenizer::of(files, "here")).pair_tokens();
  };
  EXPECT_EQ(tokens(R"({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
                       "mask_token": "<mask>"})"),
            (PairTokens{1, 0, 2, 4}));
  EXPECT_EQ(tokens(R"({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
                       "mask_token": "<mask>", "cls_token": "a", "sep_token": "b"})"),
            (PairTokens{1, 3, 5, 4}));
  EXPECT_EQ(tokens(R"({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"})"),
            std::nullopt);
}

TEST(Vocabulary, BytesAreThemselves) {
  const Vocabulary v = Vocabulary::bytes();
  EXPECT_EQ(v.size(), 256);
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(v.encode(all)[200], 200);
  EXPECT_EQ(v.decode(v.encode(all)), all);
}

TEST(Vocabulary, IdsOutsideAreShownAsReplacements) {
  // A model may have more outputs than its data has characters.
  EXPECT_EQ(Vocabulary::characters("ab").decode(Ids{0, 2, -1, 1}), "a\uFFFD\uFFFDb");
  EXPECT_EQ(Vocabulary::bytes().decode(Ids{65, 256}), "A\uFFFD");
}

/// Tokens that are bytes, or that were learned, may spell half a character.
TEST(Vocabulary, ATextOfAnyIdsIsUtf8) {
  EXPECT_EQ(Vocabulary::bytes().decode_text(Ids{'a', 0xC3, 0xA9, 0xC3, '\n', 0xFF, 256}),
            "a\u00e9\uFFFD\n\uFFFD\uFFFD");
  const Vocabulary learned = Vocabulary::bpe("abab", 260);
  Ids cut = learned.encode("\u20acz");
  cut.erase(cut.begin() + 2);
  EXPECT_EQ(learned.decode_text(cut), "\uFFFDz");
  EXPECT_EQ(Vocabulary::characters("\u00e9").decode_text(Ids{0}), "\u00e9");
}

TEST(Vocabulary, UnknownCharactersAreNamed) {
  const Vocabulary v = Vocabulary::characters("ab\u00e9");
  struct Case {
    const char *name, *in, *message;
  };
  const Case cases[] = {
      {"shown with its place in characters and bytes", "a\u00e9\u20ac",
       "character 2 (byte 3) of the text, '\u20ac', U+20AC, is not in the vocabulary of 3 "
       "characters; remove it, or train on a text that has it"},
      {"with the others that it lacks", "xa\u20acyx\n",
       "character 0 (byte 0) of the text, 'x', U+0078, is not in the vocabulary of 3 characters, "
       "nor are U+000A; 'y', U+0079; '\u20ac', U+20AC; remove it, or train on a text that has it"},
      {"with some of many", "0123456789",
       "character 0 (byte 0) of the text, '0', U+0030, is not in the vocabulary of 3 characters, "
       "nor are '1', U+0031; '2', U+0032; '3', U+0033; '4', U+0034; '5', U+0035; '6', U+0036; "
       "'7', U+0037; '8', U+0038 and 1 more; remove it, or train on a text that has it"},
      {"below the least known", "\n",
       "character 0 (byte 0) of the text, U+000A, is not in the vocabulary of 3 characters; remove "
       "it, or train on a text that has it"},
      {"not a character", "a\xFF",
       "character 1 (byte 1) of the text is not UTF-8; convert the text"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(message_of([&] { v.encode(c.in); }), c.message);
  }
}

TEST(Vocabulary, RoundTripsThroughJson) {
  const Vocabulary cases[] = {Vocabulary::bytes(),
                              Vocabulary::characters("To be, or not to be\n\t\"\\\u20ac\U0001F600"),
                              Vocabulary::characters(std::string("\0\x01\x7F", 3))};
  for (const Vocabulary& v : cases) {
    SCOPED_TRACE(v.to_json());
    EXPECT_EQ(Vocabulary::from_json(v.to_json(), "v.json"), v);
  }
  EXPECT_EQ(
      Vocabulary::characters("ba").to_json(),
      "{\"format\":\"tessera "
      "vocabulary\",\"version\":1,\"kind\":\"characters\",\"size\":2,\"characters\":\"ab\"}\n");
}

// Of token files: a text is the numbers themselves.
TEST(Vocabulary, IdsAreWrittenAsNumbers) {
  const Vocabulary ids = Vocabulary::ids(300);
  EXPECT_EQ(ids.size(), 300);
  EXPECT_EQ(ids.encode(" 7 299\n0"), (std::vector<std::int32_t>{7, 299, 0}));
  EXPECT_EQ(ids.decode(std::vector<std::int32_t>{7, 299, 0}), " 7 299 0");
  EXPECT_TRUE(ids.encode("\n").empty());
  EXPECT_NE(message_of([&] { ids.encode("7 x"); }).find("word 'x' at byte 2"), std::string::npos);
  EXPECT_NE(message_of([&] { ids.encode("300"); }).find("not an id from 0 to 299"),
            std::string::npos);
  EXPECT_EQ(Vocabulary::from_json(ids.to_json(), "v.json"), ids);
  EXPECT_NE(message_of([] {
              Vocabulary::from_json(
                  R"({"format":"tessera vocabulary","version":1,"kind":"ids","size":0})", "v.json");
            }).find("its size 0 is not a number of ids"),
            std::string::npos);
}

TEST(Vocabulary, BadJsonIsRefused) {
  const std::string head = R"({"format":"tessera vocabulary","version":1,"kind":"characters")";
  struct Case {
    std::string json, part;
  };
  const std::string of_files =
      R"({"format":"tessera vocabulary","version":1,"kind":"tokenizer","size":1,"files":)";
  const std::string deep(100'000, '[');  // deeper than a stack
  const Case cases[] = {
      {"", "not a vocabulary file"},
      {"[1", "not a vocabulary file"},
      {"{}", "not a vocabulary file"},
      {R"({"format":"tessera vocabulary","version":2})", "version is 2 but this program reads 1"},
      {R"({"format":"tessera vocabulary","version":1,"kind":"words"})",
       R"(kind "words" is none of "bytes", "characters", "bpe", "tokenizer" and "ids")"},
      {head + "}", "it has no \"characters\""},
      {head + R"(,"characters":7})", "it has no \"characters\""},
      {head + R"(,"characters":"ba","size":2})",
       "its characters are not distinct and in the order of their code points"},
      {head + R"(,"characters":"aa","size":2})",
       "its characters are not distinct and in the order of their code points"},
      {head + R"(,"characters":"","size":0})", "it has no \"characters\""},
      {text(R"({"format":"tessera vocabulary","version":)", deep, std::string(deep.size(), ']'),
            "}"),
       "version is null but this program reads 1"},
      {head + R"(,"characters":"ab","size":3})", "it says size 3 but holds 2 characters"},
      {of_files + R"({"../tokenizer.json":"{}"}})",
       R"(tokenizer file 'files': it has "../tokenizer.json", which is)"},
      {of_files + R"({"/tmp/tokenizer.json":"{}"}})",
       R"(tokenizer file 'files': it has "/tmp/tokenizer.json", which)"},
      {of_files + R"({"run.sh":"rm"}})",
       R"(tokenizer file 'files': it has "run.sh", which is not a file of a tokenizer)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.json);
    const std::string message = message_of([&] { Vocabulary::from_json(c.json, "v.json"); });
    EXPECT_NE(message.find("vocabulary 'v.json': " + c.part), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tessera
