/// What denoising and runs of words take from the tokenizers of others: marks, words, sentences.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/models/denoising.h"
#include "tessera/token_files/masked_pairs.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {
namespace {

using nlohmann::json;

/// Those that begin with [ or < are special.
Vocabulary vocabulary_of(const std::vector<std::string>& tokens,
                         const json& settings = json::object()) {
  json vocabulary, added = json::array();
  for (const std::string& token : tokens) {
    const std::size_t id = vocabulary.size();
    vocabulary[token] = id;
    if (token[0] == '[' || token[0] == '<')
      added.push_back({{"id", id}, {"content", token}, {"special", true}});
  }
  const json document = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"pre_tokenizer", {{"type", "Whitespace"}}},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", tokens[0]}}}};
  return Vocabulary::tokenizer(Tokenizer::of(
      {{"tokenizer.json", document.dump()}, {"tokenizer_config.json", settings.dump()}}, "t"));
}

std::string numbers_of(const std::vector<bool>& set) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set[i]) out.push_back(text(i));
  }
  return join(out, " ");
}

TEST(NoiseMarks, AreThoseOfTheTokenizer) {
  const json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"mask_token", "<mask>"}};
  const Vocabulary with =
      vocabulary_of({"<unk>", "a", "<extra_id_1>", "<mask>", "<extra_id_0>", "b"}, settings);
  EXPECT_EQ(noise_marks(kSpanCorruption, with), (std::vector<std::int32_t>{4, 2}));
  EXPECT_EQ(noise_marks(kTextInfilling, with), (std::vector<std::int32_t>{3}));
  for (const TextNoise& noise : {kSpanCorruption, kTextInfilling})
    EXPECT_EQ(lacked_marks(noise, &with), 0);
}

TEST(NoiseMarks, FollowATokenizerThatHasNone) {
  const Vocabulary without = vocabulary_of({"<unk>", "a", "b"});
  EXPECT_EQ(lacked_marks(kSpanCorruption, &without), 100);
  EXPECT_EQ(lacked_marks(kTextInfilling, &without), 1);
  EXPECT_EQ(noise_marks(kSpanCorruption, without).front(), 3);
  EXPECT_EQ(noise_marks(kTextInfilling, without), (std::vector<std::int32_t>{3}));
  EXPECT_EQ(lacked_marks(kSpanCorruption, nullptr), 100);
}

TEST(WordBegins, AreAsEachKindOfTokenizerMarksThem) {
  const std::string piece = "\u2581", space = "\u0120", line = "\u010a";
  EXPECT_EQ(numbers_of(word_begins(vocabulary_of({"[UNK]", "the", "##m", "sea", "##s"}))), "0 1 3");
  EXPECT_EQ(numbers_of(word_begins(vocabulary_of({"<unk>", piece + "the", "m", piece + "sea"}))),
            "1 3");
  EXPECT_EQ(numbers_of(word_begins(vocabulary_of({"<unk>", space + "the", "m", line, "s"}))),
            "1 3");
  EXPECT_EQ(numbers_of(word_begins(vocabulary_of({"<unk>", "the", "sea"}))), "0 1 2");
}

TEST(SentenceEnds, AreThoseOfTheTokensTexts) {
  EXPECT_EQ(numbers_of(sentence_ends(vocabulary_of({"<unk>", "a", "sea.", "?", "e.g", ","}))),
            "2 3");
}

}  // namespace
}  // namespace tessera
