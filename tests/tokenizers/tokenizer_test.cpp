/// Tokenizers of other programs beside what these programs make of the same texts.

#include "tessera/tokenizers/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {
namespace {

using TokenIds = std::vector<std::int32_t>;
using nlohmann::json;

/// tools/golden/tokenizer_files.py says how.
class IdDigest {
 public:
  template <typename Numbers>
  void add(const Numbers& numbers) {
    take(numbers.size());
    for (const auto number : numbers) take(static_cast<std::uint64_t>(number));
  }
  void add_bytes(const std::string& bytes) {
    add(std::vector<unsigned char>(bytes.begin(), bytes.end()));
  }
  std::string text() const {
    char out[17];
    std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(value_));
    return out;
  }

 private:
  void take(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001B3; }
  std::uint64_t value_ = 0xCBF29CE484222325;
};

json golden_tokenizers() {
  return json::parse(read_file(repo_file("tests/golden/tokenizers.json")));
}

void expect_equal(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                  const json& c) {
  IdDigest all, decoded, pairs;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TokenIds ids = tokenizer.encode(texts[i]);
    if (c.contains("ids") && i < c["ids"].size()) {
      EXPECT_EQ(ids, c["ids"][i].get<TokenIds>()) << texts[i];
    }
    all.add(ids);
    decoded.add_bytes(tokenizer.decode(ids));
    if (i == 0) continue;
    Encoding pair = tokenizer.encode_pair(texts[i - 1], texts[i]);
    pair.ids.insert(pair.ids.end(), pair.type_ids.begin(), pair.type_ids.end());
    pairs.add(pair.ids);
  }
  EXPECT_EQ(all.text(), c["all"]);
  EXPECT_EQ(decoded.text(), c["decoded"]);
  if (c.contains("pairs")) {
    EXPECT_EQ(pairs.text(), c["pairs"]);
  }
}

Tokenizer of_document(const json& document) {
  return Tokenizer::of({{"tokenizer.json", document.dump()}}, "test");
}

TEST(Tokenizers, EveryPartEqualsTheReference) {
  const json golden = golden_tokenizers();
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  for (const json& c : golden["cases"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    json document = c["document"];
    json& vocabulary = document["model"]["vocab"];
    if (vocabulary.is_string()) vocabulary = golden[vocabulary.get<std::string>()];
    expect_equal(of_document(document), texts, c);
  }
}

TEST(Tokenizers, SentencePieceModelsEqualTheReference) {
  const json golden = golden_tokenizers();
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  for (const json& c : golden["sentencepieces"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    // As a checkpoint records it.
    const json recorded = {{"format", "tessera vocabulary"},
                           {"version", 1},
                           {"kind", "tokenizer"},
                           {"size", 0},
                           {"files", {{"tokenizer.model", {{"base64", c["model"]}}}}}};
    const std::string message =
        message_of([&] { Vocabulary::from_json(recorded.dump(), "v.json"); });
    const std::string mark = "ids up to ";
    ASSERT_NE(message.find(mark), std::string::npos) << message;
    json sized = recorded;
    sized["size"] = std::stoi(message.substr(message.find(mark) + mark.size())) + 1;
    const Vocabulary vocabulary = Vocabulary::from_json(sized.dump(), "v.json");
    EXPECT_EQ(Vocabulary::from_json(vocabulary.to_json(), "v.json"), vocabulary);
    expect_equal(*vocabulary.made_elsewhere(), texts, c);
    EXPECT_EQ(end_of_document(*vocabulary.made_elsewhere()),
              vocabulary.made_elsewhere()->id_of("</s>"));
  }
}

/// Digests of the same texts, by tools/golden/tokenizer_files.py DATA.
TEST(Tokenizers, RealVocabulariesEqualTheReference) {
  struct Case {
    const char *path, *all, *decoded, *pairs;
    std::int32_t size;
  };
  const Case cases[] = {
      {"bert/bert-base-uncased-vocab.txt", "b9cf785acb2ebfa5", "1dac5cb267b1a695",
       "42ec7c7cdde06d40", 30522},
      {"bert/bert-base-cased-vocab.txt", "5298032de2bcfe2e", "97de8731ea9717eb", "37c2084575ef8574",
       28996},
      {"gpt2", "473b7f6a5685ba62", "16baf7bd0d7b9447", "081085b74816d8b2", 50257},
  };
  const auto texts = golden_tokenizers()["texts"].get<std::vector<std::string>>();
  for (const Case& c : cases) {
    const std::string path = test_data(c.path);
    if (path.empty()) GTEST_SKIP() << no_test_data(c.path);
    SCOPED_TRACE(c.path);
    const Tokenizer tokenizer = Tokenizer::load(path);
    EXPECT_EQ(tokenizer.size(), c.size);
    expect_equal(tokenizer, texts, {{"all", c.all}, {"decoded", c.decoded}, {"pairs", c.pairs}});
  }
}

TEST(Tokenizers, ThreadsChangeNothing) {
  const json golden = golden_tokenizers();
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  json document = golden["cases"][0]["document"];
  document["model"]["vocab"] = golden["tokens"];
  const Tokenizer tokenizer = of_document(document);
  const auto three = tokenizer.encode_batch(texts, 3);
  ASSERT_EQ(three.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(three[i], tokenizer.encode(texts[i]));
}

/// vocab.txt: ends of lines, empty lines and tokens that are there twice, as the reference reads
/// them.
TEST(Tokenizers, VocabularyOfLines) {
  const TestFolder folder;
  write_atomically(folder / "vocab.txt",
                   "[PAD]\r\n[UNK]\r\n\r\na \t\r\nb\na\n##b\u3000\n[CLS]\n[SEP]\n");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.size(), 9);
  EXPECT_EQ(tokenizer.id_of("a"), 5);
  EXPECT_EQ(tokenizer.id_of(""), 2);
  EXPECT_EQ(tokenizer.encode("A ab q [PAD]"), (TokenIds{7, 5, 5, 6, 1, 0, 8}));
  SpecialTokens special;
  special.pad = 0, special.unk = 1, special.cls = 7, special.sep = 8;
  EXPECT_EQ(tokenizer.special_tokens(), special);
  write_atomically(folder / "tokenizer_config.json",
                   R"({"do_lower_case": false, "mask_token": {"content": "b"}})");
  const Tokenizer told = Tokenizer::load(folder.path());
  // "b" is [MASK], which is found in any text; transformers adds it as one that has a role.
  EXPECT_EQ(told.encode("A ab", {.add_special_tokens = false}), (TokenIds{1, 5, 4}));
  EXPECT_EQ(told.special_tokens().mask, 4);
  EXPECT_EQ(told.decode(TokenIds{7, 5, 6, 8}, /*skip_special_tokens=*/true), "ab");
}

/// model_type makes a class where no file of the tokenizer names one.
TEST(Tokenizers, AnUnknownClassIsNotBlamedOnAFileThatIsNotThere) {
  const TestFolder folder;
  write_atomically(folder / "tokenizer.json", R"({"model": {"type": "WordLevel", "vocab": {}}})");
  write_atomically(folder / "config.json", R"({"model_type": "funnel"})");
  try {
    Tokenizer::load(folder.path());
    FAIL();
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_TRUE(said.starts_with(text("tokenizer '", folder.path(), "' is of class Funnel")))
        << said;
    EXPECT_NE(said.find("or model_type of config.json), which is not supported"), std::string::npos)
        << said;
  }
}

TEST(Tokenizers, BrokenUtf8IsReplaced) {
  const TestFolder folder;
  write_atomically(folder / "vocab.txt", "[UNK]\na\n\uFFFD\n");
  const Tokenizer tokenizer = Tokenizer::load(folder / "vocab.txt");
  EXPECT_EQ(tokenizer.encode("a \xff\xc3 a"), tokenizer.encode("a \uFFFD\uFFFD a"));
}

TEST(Tokenizers, SpecialTokensInATextMayBeText) {
  const TestFolder folder;
  write_atomically(folder / "vocab.txt", "[UNK]\n[\nsep\n]\n[CLS]\n[SEP]\n");
  const Tokenizer tokenizer = Tokenizer::load(folder / "vocab.txt");
  EXPECT_EQ(tokenizer.encode("[SEP]", {.add_special_tokens = false}), (TokenIds{5}));
  EXPECT_EQ(tokenizer.encode("[sep]", {.add_special_tokens = false, .find_special_tokens = false}),
            (TokenIds{1, 2, 3}));
}

/// Ids that come one at a time, and characters of several of them.
TEST(Tokenizers, AStreamOfIdsIsTheirText) {
  const std::string path = test_data("gpt2");
  if (path.empty()) GTEST_SKIP() << no_test_data("gpt2");
  const Vocabulary vocabulary = Vocabulary::tokenizer(Tokenizer::load(path));
  const std::string text = " caf\u00e9 \U0001F468\u200d\U0001F469 end";
  const TokenIds before = vocabulary.encode("A"), ids = vocabulary.encode(text);
  TextStream stream(vocabulary, before);
  std::string out;
  for (const std::int32_t id : ids) {
    const std::string part = stream.add(id);
    EXPECT_EQ(part.find("\uFFFD"), std::string::npos) << part;
    out += part;
  }
  EXPECT_EQ(out + stream.rest(), text);
}

TEST(Tokenizers, WhatIsMissingOrUnknownIsNamed) {
  struct Case {
    const char *json, *message;
  };
  const std::string words = R"("model": {"type": "WordLevel", "vocab": {"<unk>": 0}})";
  const Case cases[] = {
      {R"([1])", "is not a JSON object"},
      {R"({"a": )", "is not a JSON object"},
      {R"({})", "it has no \"model\""},
      {R"({"version": "2.0"})", "version is '2.0' but only 1.0 is supported"},
      {R"({"model": {"type": "Magic"}})",
       "type 'Magic' is not a supported model; supported are BPE, WordPiece"},
      {R"({"model": {"type": "WordLevel", "vocab": []}})",
       "model.vocab: it is a list where an object"},
      {R"({"model": {"type": "WordLevel", "vocab": {"a": -1}}})", "the id of 'a' is -1 where"},
      {R"({"model": {"type": "WordLevel", "vocab": {"a": 4294967296}}})",
       "the id of 'a' is 4294967296 where"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})",
       "merge 1, 'a' and 'b': 'b' is not a token"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}})",
       "merge 1 is \"a\" where two tokens"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.5}})",
       "dropout is 0.5, which merges at random"},
      {R"({"model": {"type": "Unigram", "vocab": [["a", "b"]]}})",
       "model.vocab[0]: it is a list where a piece"},
      {R"({"model": {"type": "Unigram", "vocab": [["a", -1]], "unk_id": 1}})", "unk_id is 1 but"},
  };
  for (const Case& c : cases) {
    const std::string message = message_of([&] {
      Tokenizer::of({{"tokenizer.json", c.json}}, "x");
    });
    EXPECT_NE(message.find(c.message), std::string::npos) << c.json << "\n" << message;
  }
  const Case parts[] = {
      {R"("normalizer": {"type": "Upper"})",
       "normalizer: type 'Upper' is not a supported normalizer"},
      {R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "/w=="})",
       "says that its trie has 0"},
      {R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})",
       "pattern '(a' is refused"},
      {R"("pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Lost"})",
       "behavior 'Lost' is none of Removed"},
      {R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Punctuation"}, {"type": "X"}]})",
       "pre_tokenizer.pretokenizers[1]: type 'X'"},
      {R"("post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["b", 9]})",
       "adds the id 9, but ids end at 0"},
      {R"("decoder": {"type": "CTC"})", "type 'CTC' is not a supported decoder"},
      {R"("added_tokens": [{"content": 5}])", "added_tokens[0]: \"content\" is 5 where a text"},
  };
  for (const Case& c : parts) {
    const std::string message = message_of([&] {
      Tokenizer::of({{"tokenizer.json", text("{", words, ", ", c.json, "}")}}, "x");
    });
    EXPECT_NE(message.find(c.message), std::string::npos) << c.json << "\n" << message;
  }
  const TestFolder folder;
  EXPECT_NE(message_of([&] { Tokenizer::load(folder.path()); }).find("holds no tokenizer"),
            std::string::npos);
  EXPECT_NE(message_of([&] { Tokenizer::load(folder / "gpt2"); }).find("nothing is downloaded"),
            std::string::npos);
}

/// 12 replacements that each make four letters of one: 16 MiB of a letter.
TEST(Tokenizers, NormalizersThatGrowATextWithoutEndAreRefused) {
  json steps = json::array();
  for (int i = 0; i < 12; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaa"}});
  const json model = {{"type", "WordLevel"}, {"vocab", {{"a", 0}}}, {"unk_token", "a"}};
  const json normalizer = {{"type", "Sequence"}, {"normalizers", steps}};
  const Tokenizer tokenizer = of_document({{"model", model}, {"normalizer", normalizer}});
  const std::string message = message_of([&] { tokenizer.encode("a"); });
  EXPECT_NE(message.find("the normalizer of the tokenizer makes more than"), std::string::npos)
      << message;
}

/// Up to 16 that each make four letters of one, each in a sequence of its own.
TEST(Tokenizers, DecodersThatGrowATextWithoutEndAreRefused) {
  const json model = {{"type", "WordLevel"}, {"vocab", {{"a", 0}}}, {"unk_token", "a"}};
  json nested = {{"type", "Fuse"}};
  for (int i = 0; i < 16; ++i) {
    const json step = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaa"}};
    nested = {{"type", "Sequence"}, {"decoders", {nested, step}}};
    const Tokenizer tokenizer = of_document({{"model", model}, {"decoder", nested}});
    const std::string message = message_of([&] { tokenizer.decode(TokenIds{0}); });
    const bool fits = i < 11;  // 4^11 bytes are 4 MiB
    EXPECT_EQ(message.find("the decoder of the tokenizer makes more than 8 MiB of one text"),
              fits ? message.npos : 0U)
        << i << ": " << message;
  }
}

/// A set within a set is part of it; a hyphen at its edge stands for itself.
TEST(Tokenizers, SetsWithinSetsAreRead) {
  const auto words = [](const char* pattern, const char* behavior) {
    const json model = {
        {"type", "WordLevel"}, {"vocab", {{"?", 0}, {"ab", 1}, {"-", 2}}}, {"unk_token", "?"}};
    const json split = {
        {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", behavior}};
    return of_document({{"model", model}, {"pre_tokenizer", split}}).encode("ab-ab.ab c");
  };
  EXPECT_EQ(words("[^(\\s|[.,!?])]+", "Isolated"), (TokenIds{0, 0, 1, 0, 0}));
  EXPECT_EQ(words("[c[-.]\\s]", "Isolated"), (TokenIds{1, 2, 1, 0, 1, 0, 0}));
  for (const char* const refused : {"[a[^b]]", "[a&&b]", "[a-[b]]"})
    EXPECT_NE(message_of([&] { words(refused, "Removed"); }).find("within brackets"),
              std::string::npos);
}

/// Parts within parts are bounded, however deep the file is.
TEST(Tokenizers, DeepFilesAreRefused) {
  std::string deep = R"({"type": "Lowercase"})";
  for (int i = 0; i < 3000; ++i) deep = R"({"type": "Sequence", "normalizers": [)" + deep + "]}";
  const std::string json =
      R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}, "normalizer": )" + deep + "}";
  const std::string message = message_of([&] { Tokenizer::of({{"tokenizer.json", json}}, "x"); });
  EXPECT_NE(message.find("deeper than 100"), std::string::npos) << message;
}

/// A file cut anywhere, or with a byte changed, is refused or read, and nothing else.
TEST(Tokenizers, DamagedModels) {
  const json golden = golden_tokenizers();
  std::int64_t refused = 0;
  const std::string base64 = golden["sentencepieces"][0]["model"];
  for (std::size_t size = 0; size < base64.size(); size += 4) {
    json cut = {{"format", "tessera vocabulary"},
                {"version", 1},
                {"kind", "tokenizer"},
                {"size", 1},
                {"files", {{"tokenizer.model", {{"base64", base64.substr(0, size)}}}}}};
    refused += message_of([&] { Vocabulary::from_json(cut.dump(), "v.json"); }).empty() ? 0 : 1;
  }
  EXPECT_EQ(refused, static_cast<std::int64_t>((base64.size() + 3) / 4));
}

}  // namespace
}  // namespace tessera
