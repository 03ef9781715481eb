/// Files of tagged words, their tokens and samples.

#include "tessera/data/tagged_words.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/labelled_texts.h"
#include "tessera/data/tagged_rows.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

/// "EU/B-ORG rejects/O | Peter/B-PER": sentences, each behind the line in which it begins.
std::string tagged_text(const std::vector<TaggedSentence>& sentences) {
  std::string out;
  for (const TaggedSentence& sentence : sentences) {
    out += text(out.empty() ? "" : " | ", sentence.line, ":");
    for (std::size_t i = 0; i < sentence.words.size(); ++i)
      out += text(" ", sentence.words[i], "/", sentence.tags[i]);
  }
  return out;
}

struct TaggedCase {
  const char *name, *file, *bytes, *sentences;
};
const TaggedCase kTagged[] = {
    {"CoNLL-2003: four columns, documents", "a.txt",
     "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\n",
     "3: EU/B-ORG rejects/O | 6: Peter/B-PER"},
    {"two columns with tabs; a word with a blank", "a.conll",
     "New York\tB-LOC\r\n.\tO\r\n\r\n\r\nx\tO", "1: New York/B-LOC ./O | 5: x/O"},
    {"a document begins without an empty line", "a", "a O\n-DOCSTART- O\nb O\n", "1: a/O | 3: b/O"},
    {"JSON lines with texts", "a.jsonl",
     "{\"id\": 0, \"tokens\": [\"EU\", \"x\"], \"ner_tags\": [\"B-ORG\", \"O\"]}\n\n"
     "{\"tokens\": [], \"ner_tags\": []}\n{\"ner_tags\": [\"O\"], \"tokens\": [\"\\u00e9\"]}\n",
     "1: EU/B-ORG x/O | 4: \xC3\xA9/O"},
    {"blanks around tags", "a.jsonl", "{\"tokens\": [\"a\", \"b\"], \"tags\": [\"O \", \" X\"]}",
     "1: a/O b/X"},
    {"blanks behind a tab", "a.conll", "a\t O\n", "1: a/O"},
    {"JSON lines with numbers, other keys", "a.json",
     "{\"words\": [\"a\", \"b\"], \"tags\": [3, 0]}", "1: a/3 b/0"},
};

TEST(TaggedWords, AreRead) {
  for (const TaggedCase& c : kTagged) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(tagged_text(parse_tagged_words(c.bytes, c.file)), c.sentences);
  }
}

const TaggedCase kRefused[] = {
    {"no tag", "a.txt", "EU B-ORG\nrejects\n",
     "'a.txt' line 2 has one column, 'rejects', where a word and its tag are expected; give each "
     "line a word and a tag, and an empty line between sentences"},
    {"not UTF-8", "a.txt", "EU B-ORG\nr\xFFx O\n",
     "'a.txt' line 2, byte 2 is not UTF-8; convert the file to UTF-8"},
    {"nothing", "a.txt", "\n\n",
     "'a.txt' has no sentence; give a file with a word and its tag on each line, or a .jsonl file "
     "of JSON lines"},
    {"lengths", "a.jsonl", "{\"tokens\": [\"a\", \"b\"], \"ner_tags\": [\"O\"]}",
     "'a.jsonl' line 1 has 2 words in 'tokens' and 1 tag in 'ner_tags'; give each word a tag"},
    {"no known key", "a.jsonl", "{\"text\": \"a\", \"ner_tags\": [\"O\"]}",
     "'a.jsonl' line 1 has no key tokens or words with its words; its keys are 'ner_tags', 'text'; "
     "give the key of the words"},
    {"a key that comes and goes", "a.jsonl",
     "{\"tokens\": [\"a\"], \"tags\": [\"O\"]}\n{\"words\": [\"a\"], \"tags\": [\"O\"]}",
     "'a.jsonl' line 2 has no key 'tokens', which is a list in other lines; give it to every line"},
    {"no list", "a.jsonl", "{\"tokens\": \"a b\", \"tags\": [\"O\"]}",
     "'a.jsonl' line 1: key 'tokens' is \"a b\" where a list of texts or whole numbers is "
     "expected"},
    {"a list of something else", "a.jsonl", "{\"tokens\": [\"a\"], \"tags\": [null]}",
     "'a.jsonl' line 1: key 'tags' is null where a list of texts or whole numbers is expected"},
    {"a blank tag", "a.jsonl", "{\"tokens\": [\"a\", \"b\"], \"tags\": [\"O\", \" \"]}",
     "'a.jsonl' line 1: tag 2 of 'tags' is empty; give each word a tag, like O"},
    {"a word without a tag", "a.jsonl", "{\"tokens\": [\"a\", \"b\"], \"ner_tags\": [0, -100]}",
     "'a.jsonl' line 1: tag 2 of 'ner_tags' is -100, which other programs use for no tag; give "
     "each word a tag"},
    {"no JSON", "a.jsonl", "[1]\n",
     "'a.jsonl' line 1 is not a JSON object; give a file with an object in each line, like "
     "{\"tokens\": [\"EU\"], \"ner_tags\": [\"B-ORG\"]}"},
};

TEST(TaggedWords, AreRefusedWithTheirPlace) {
  for (const TaggedCase& c : kRefused) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(message_of([&] { (void)parse_tagged_words(c.bytes, c.file); }), c.sentences);
  }
}

TEST(TaggedWords, MayLackTagsWhereThatIsTold) {
  for (const auto& [bytes, file] :
       {std::pair("EU\nrejects\n\ncall\n", "a.conll"),
        {"{\"tokens\": [\"EU\", \"rejects\"]}\n{\"tokens\": [\"call\"]}\n", "a.jsonl"}}) {
    SCOPED_TRACE(file);
    const std::vector<TaggedSentence> all =
        parse_tagged_words(bytes, file, {.may_lack_tags = true});
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].words, (std::vector<std::string>{"EU", "rejects"}));
    EXPECT_TRUE(all[0].tags.empty() && all[1].tags.empty());
  }
  EXPECT_EQ(parse_tagged_words("EU X\n", "a.conll", {.may_lack_tags = true})[0].tags,
            (std::vector<std::string>{"X"}));
}

// Characters as tokens: a word and its blank.
const char* const kSentences = "ab X\nc O\n\nd O\n\nefgh X\ni O\n";

/// The sentences of a file, with characters as tokens.
Dataset of_characters(const std::string& bytes, double held_out,
                      std::vector<std::string> known = {}, bool keeps = false) {
  const TestFolder folder;
  std::ofstream(folder / "a.conll") << bytes;
  return load_tagged_rows({.paths = {folder / "a.conll"},
                           .known_labels = std::move(known),
                           .keeps_labels = keeps,
                           .held_out = held_out},
                          Vocabulary::characters(" abcdefghi"));
}

using Values = std::vector<std::int32_t>;

Values labels_of_tokens(const Dataset& data) {
  Values out;
  for (const RowLabel& row : data.texts().labels)
    out.insert(out.end(), row.words()->of_tokens.begin(), row.words()->of_tokens.end());
  return out;
}

TEST(TaggedRows, LabelTheFirstTokenOfAWord) {
  const Dataset data = of_characters(kSentences, 0.34);
  constexpr std::int32_t x = kIgnoredLabel;
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"O", "X"}));
  EXPECT_EQ(data.texts().rows.columns, 1);
  EXPECT_EQ(data.texts().rows.train, 1);
  EXPECT_EQ(data.texts().rows.ends, (std::vector<std::int64_t>{5, 7, 14}));
  const auto all = data.texts().tokens.all();
  EXPECT_EQ(Values(all.begin(), all.end()), (Values{0, 1, 2, 0, 3, 0, 4, 0, 5, 6, 7, 8, 0, 9}));
  EXPECT_EQ(data.texts().tokens.train().size(), 5U);
  EXPECT_EQ(labels_of_tokens(data), (Values{1, x, x, 0, x, 0, x, 1, x, x, x, x, 0, x}));
}

TEST(TaggedRows, AreHeldOutApartAndLearnTheirVocabulary) {
  const TestFolder folder;
  std::ofstream(folder / "train.jsonl") << R"({"words": ["ab", "c"], "pos": ["N", "V"]})";
  std::ofstream(folder / "dev.jsonl") << R"({"words": ["c"], "pos": ["N"]})";
  RowsChoice choice{.paths = {folder / "train.jsonl"},
                    .valid_paths = {folder / "dev.jsonl"},
                    .label_column = "pos"};
  const Dataset data = load_tagged_rows(choice, VocabularyChoice(VocabularyKind::Characters));
  EXPECT_EQ(data.vocabulary.size(), 5) << "a, b, c, the blank and the new line";
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"N", "V"}));
  EXPECT_EQ(data.texts().rows.train, 1);
  EXPECT_EQ(data.texts().rows.rows(), 2);
  EXPECT_EQ(data.digest, tagged_rows_digest(choice));
  EXPECT_EQ(load_tagged_rows(choice, data.vocabulary).texts().rows.ends, data.texts().rows.ends);
  std::ofstream(folder / "dev.jsonl") << R"({"words": ["c"], "pos": ["X"]})";
  EXPECT_NE(
      message_of([&] {
        (void)load_tagged_rows(choice, VocabularyChoice(VocabularyKind::Characters));
      }).find("has the tag 'X', which is not among the tags of the training sentences: 'N', 'V'"),
      std::string::npos);
}

TEST(TaggedRows, NumbersAreInTheirOrder) {
  EXPECT_EQ(of_characters("a 10\nb 9\nc 0\n", 0).label_names,
            (std::vector<std::string>{"0", "9", "10"}));
}

TEST(TaggedRows, TagsOfAModelAreKept) {
  EXPECT_EQ(labels_of_tokens(of_characters("a O\n", 0, {"X", "O"})), (Values{1, -100}));
  EXPECT_EQ(of_characters("a O\nb Y\n", 0, {"X", "O"}).label_names,
            (std::vector<std::string>{"O", "Y"}));
  const std::string message = message_of([] {
    (void)of_characters("a O\n\nb Y\n", 0, {"X", "O"}, true);
  });
  EXPECT_NE(message.find("the word 'b' has the tag 'Y', which is not among the model's tags: "
                         "'X', 'O'; correct it, or train on sentences with all tags\n    in "
                         "the sentence at line 3 of '"),
            std::string::npos)
      << message;
}

/// The inputs of samples [first, first + count).
std::map<std::string, Values> tagged_batch(const Samples& samples, std::int64_t context,
                                           std::int64_t first, std::int64_t count) {
  std::map<std::string, Values> out;
  BatchInputs batch("test");
  for (const char* const name : {"ids", "types", "mask", "labels"}) {
    Values& values = out[name];
    values.resize(static_cast<std::size_t>(count * context), 77);
    batch.add(name, {DType::I32, {count, context}, {}},
              std::as_writable_bytes(std::span(values)).data());
  }
  samples.fill(first, count, batch);
  batch.require_filled();
  return out;
}

TEST(TaggedSamples, AreSentencesBetweenClsAndSep) {
  const Dataset data = of_characters(text("i O\n\n", kSentences), 0.67);
  const auto samples = labelled_texts(
      data, DataPart::Valid,
      {.context = 7, .frame = text_frame(11, 12, false), .pad = 10, .types = true, .mask = true});
  EXPECT_EQ(samples->size(), 3);
  const auto batch = tagged_batch(*samples, 7, 1, 3);
  constexpr std::int32_t x = kIgnoredLabel;
  EXPECT_EQ(batch.at("ids"),
            (Values{11, 0, 4, 12, 10, 10, 10, 11, 0, 5, 6, 7, 8, 12, 10, 10, 10, 10, 10, 10, 10}));
  EXPECT_EQ(batch.at("mask"),
            (Values{1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.at("types"), Values(21, 0));
  EXPECT_EQ(batch.at("labels"),
            (Values{x, 0, x, x, x, x, x, x, 1, x, x, x, x, x, x, x, x, x, x, x, x}));
}

}  // namespace
}  // namespace tessera
