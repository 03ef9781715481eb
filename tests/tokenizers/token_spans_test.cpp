/// Where tokens stand in texts, beside what `tokenizers` says.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/tokenizer.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {
namespace {

using nlohmann::json;

json golden_json(const char* name) {
  return json::parse(read_file(repo_file(text("tests/golden/", name))));
}

using Numbers = std::vector<std::int64_t>;

/// Ids, begins and ends. A token without a character is at no place.
std::vector<Numbers> span_numbers(const SpannedIds& of) {
  std::vector<Numbers> out(3);
  for (std::size_t i = 0; i < of.ids.size(); ++i) {
    const ByteSpan span = of.spans[i].begin < of.spans[i].end ? of.spans[i] : ByteSpan{};
    out[0].push_back(of.ids[i]);
    out[1].push_back(span.begin);
    out[2].push_back(span.end);
  }
  return out;
}

/// tools/golden/token_spans.py says how.
std::string span_digest(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::uint64_t value = 0xCBF29CE484222325;
  const auto take = [&](std::uint64_t number) { value = (value ^ number) * 0x100000001B3; };
  for (const std::string& given : texts) {
    for (const Numbers& numbers : span_numbers(tokenizer.encode_spans(given))) {
      take(numbers.size());
      for (const std::int64_t number : numbers) take(static_cast<std::uint64_t>(number));
    }
  }
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(value));
  return out;
}

TEST(TokenSpans, OfSmallTokenizersEqualTheReference) {
  const json golden = golden_json("tokenizers.json"), spans = golden_json("token_spans.json");
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  for (const json& c : spans["cases"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    json document;
    for (const json& known : golden["cases"]) {
      if (known["name"] == c["name"]) document = known["document"];
    }
    json& vocabulary = document["model"]["vocab"];
    if (vocabulary.is_string()) vocabulary = golden[vocabulary.get<std::string>()];
    const Tokenizer tokenizer = Tokenizer::of({{"tokenizer.json", document.dump()}}, "test");
    for (std::size_t i = 0; i < c["spans"].size(); ++i)
      EXPECT_EQ(span_numbers(tokenizer.encode_spans(texts[i])),
                c["spans"][i].get<std::vector<Numbers>>())
          << texts[i];
    EXPECT_EQ(span_digest(tokenizer, texts), c["all"]);
  }
}

/// Digests of the lines of MRPC's training part, by tools/golden/token_spans.py DATA.
TEST(TokenSpans, OfRealTextsEqualTheReference) {
  struct Case {
    const char *path, *all;
  };
  const Case cases[] = {{"bert/bert-base-uncased-vocab.txt", "cd1f51010858d844"},
                        {"bert/bert-base-cased-vocab.txt", "def8741b653a0a41"},
                        {"gpt2", "fe2a7d59e73e93fc"}};
  const std::string data = test_data("mrpc/msr_paraphrase_train.txt");
  if (data.empty()) GTEST_SKIP() << no_test_data("mrpc/msr_paraphrase_train.txt");
  const std::vector<std::string> lines =
      split(read_file(data).substr(read_file(data).starts_with("\xEF\xBB\xBF") ? 3 : 0), '\n');
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    const std::string path = test_data(c.path);
    if (path.empty()) GTEST_SKIP() << no_test_data(c.path);
    EXPECT_EQ(span_digest(Tokenizer::load(path), lines), c.all);
  }
}

TEST(TokenSpans, OfOtherVocabulariesAreWhatTheirTokensSpell) {
  const std::string given = "n\u00e9 na na na";
  for (const Vocabulary& vocabulary :
       {Vocabulary::bytes(), Vocabulary::characters(given), Vocabulary::bpe(given, 258)}) {
    const SpannedIds of = vocabulary.encode_spans(given);
    EXPECT_EQ(of.ids, vocabulary.encode(given));
    std::string spelled;
    for (std::size_t i = 0; i < of.ids.size(); ++i) {
      const auto begin = static_cast<std::size_t>(of.spans[i].begin),
                 end = static_cast<std::size_t>(of.spans[i].end);
      EXPECT_EQ(given.substr(begin, end - begin), vocabulary.decode({&of.ids[i], 1}));
      spelled += given.substr(begin, end - begin);
    }
    EXPECT_EQ(spelled, given);
  }
}

TEST(TokenSpans, WhatCannotBeFollowedIsRefused) {
  const Tokenizer tokenizer = Tokenizer::of(
      {{"tokenizer.json",
        R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "^b"}, "content": "a"},
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})"}},
      "test");
  EXPECT_EQ(tokenizer.encode_spans("ba").ids, (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(message_of([&] { (void)tokenizer.encode_spans("ab"); }),
            "unknown which characters the tokenizer's normalizer made of 'b' at byte 1 of "
            "the text; use a tokenizer whose normalizer changes a few characters at a time, as "
            "BERT's");
  EXPECT_EQ(message_of([&] { (void)tokenizer.encode_spans("a\xFF"); }),
            "byte 2 of the text is not UTF-8; convert it to UTF-8");
}

}  // namespace
}  // namespace tessera
