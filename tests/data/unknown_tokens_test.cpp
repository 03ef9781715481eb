/// Data that its tokenizer does not know is told.

#include "tessera/data/unknown_tokens.h"
#include "tessera/data/dataset.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tessera {
namespace {

using nlohmann::json;

Dataset data_of(const json& settings, const std::vector<std::int32_t>& ids) {
  const json document = {{"version", "1.0"},
                         {"model",
                          {{"type", "WordLevel"},
                           {"vocab", {{"[UNK]", 0}, {"a", 1}, {"</s>", 2}}},
                           {"unk_token", "[UNK]"}}}};
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  config.update(settings);
  const Tokenizer made = Tokenizer::of(
      {{"tokenizer.json", document.dump()}, {"tokenizer_config.json", config.dump()}}, "t");
  return {Vocabulary::tokenizer(made), Texts{TokenStream(ids, 0), {{"a.txt", 1, 0, 0}}, {}}, ""};
}

TEST(UnknownTokens, AreToldWhereMostAreSo) {
  const json unknown = {{"unk_token", "[UNK]"}};
  EXPECT_EQ(notice_of_unknown_tokens(data_of(unknown, {0, 0, 1, 0})),
            "75 % of the tokens of the text of 'a.txt' are [UNK], the unknown token; give a "
            "tokenizer for this language and kind of text");
  EXPECT_EQ(notice_of_unknown_tokens(data_of(unknown, {0, 0, 1, 1})), "") << "half of them";
  EXPECT_EQ(notice_of_unknown_tokens(data_of(json::object(), {0, 0, 0})), "") << "no role";
  EXPECT_EQ(
      notice_of_unknown_tokens(data_of({{"unk_token", "</s>"}, {"eos_token", "</s>"}}, {2, 2, 2})),
      "")
      << "it ends documents";
}

}  // namespace
}  // namespace tessera
