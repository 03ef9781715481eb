/// Rows of tables as tokens: documents with their ends, pairs, what is held out.

#include "tessera/data/rows.h"

#include <gtest/gtest.h>

#include <fstream>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/pairs.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

struct RowFiles {
  TestFolder folder;
  RowsChoice choice{.columns = {"text"}, .held_out = 0};

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / name) << bytes;
    return folder / name;
  }
  explicit RowFiles(const std::string& bytes, const std::string& name = "rows.csv") {
    choice.paths = {write(name, bytes)};
  }
  Dataset load(VocabularyKind kind = VocabularyKind::Bytes) const {
    return load_rows(choice, VocabularyChoice(kind));
  }
};

/// "one|two||three": texts of rows, and || where the held-out part begins.
std::string rows_text(const Dataset& data) {
  std::string out;
  for (std::int64_t row = 0; row < data.texts().rows.rows(); ++row) {
    if (row == data.texts().rows.train) out += "||";
    for (std::int64_t column = 0; column < data.texts().rows.columns; ++column)
      out += text(
          data.vocabulary.decode(data.texts().rows.text(data.texts().tokens.all(), row, column)),
          "|");
  }
  return out;
}

TEST(Rows, AreDocumentsWithTheirEnds) {
  const RowFiles files("id,text\n1,one\n2,\"two\nlines\"\n3,x\n");
  const Dataset data = files.load();
  EXPECT_EQ(rows_text(data), "one\n|two\nlines\n|x\n|");
  EXPECT_EQ(data.vocabulary.decode(data.texts().tokens.train()), "one\ntwo\nlines\nx\n");
  EXPECT_TRUE(data.texts().tokens.held_out().empty());
  EXPECT_EQ(data.notice, "");
}

TEST(Rows, OfSeveralFilesFollowEachOther) {
  RowFiles files("text\na\nb\n");
  files.choice.paths.push_back(files.write("b.jsonl", "{\"text\": \"c\"}\n{\"text\": \"d\"}\n"));
  EXPECT_EQ(rows_text(files.load()), "a\n|b\n|c\n|d\n|");
  files.choice.paths = {files.folder.path()};
  EXPECT_EQ(rows_text(files.load()), "c\n|d\n|a\n|b\n|") << "of a folder, by name";
}

TEST(Rows, TheLastOnesAreHeldOut) {
  RowFiles files("text\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  const struct {
    double share;
    const char* rows;
  } cases[] = {{0.1, "a\n|b\n|c\n|d\n|e\n|f\n|g\n|h\n|i\n|||j\n|"},
               {0.3, "a\n|b\n|c\n|d\n|e\n|f\n|g\n|||h\n|i\n|j\n|"},
               {0.35, "a\n|b\n|c\n|d\n|e\n|f\n|||g\n|h\n|i\n|j\n|"}};
  for (const auto& c : cases) {
    files.choice.held_out = c.share;
    const Dataset data = files.load();
    EXPECT_EQ(rows_text(data), c.rows);
    EXPECT_EQ(std::ssize(data.texts().tokens.train()), 2 * data.texts().rows.train);
  }
  files.choice.valid_paths = {files.write("valid.csv", "text\nx\ny\n")};
  EXPECT_EQ(rows_text(files.load()), "a\n|b\n|c\n|d\n|e\n|f\n|g\n|h\n|i\n|j\n|||x\n|y\n|");
}

TEST(Rows, WithoutATextAreLeftOut) {
  RowFiles files("id,text\n1,one\n2,\n3,two\n4,\n");
  files.choice.held_out = 0.5;
  const Dataset data = files.load();
  EXPECT_EQ(rows_text(data), "one\n|||two\n|");
  EXPECT_EQ(data.notice, "2 rows have no text in column 'text', and are skipped");
}

TEST(Rows, LearnTheirVocabularyOfWhatTrains) {
  RowFiles files("text\nabab\nabab\ncdcd\ncdcd\n");
  files.choice.held_out = 0.5;
  const Dataset learned = load_rows(files.choice, VocabularyChoice(VocabularyKind::Bpe, 258));
  EXPECT_EQ(learned.vocabulary.size(), 258);
  EXPECT_EQ(learned.texts().tokens.train().size(), 4u) << "a token for each text, and its end";
  EXPECT_EQ(learned.texts().tokens.held_out().size(), 10u);
  const Dataset known = files.load(VocabularyKind::Characters);
  EXPECT_EQ(known.vocabulary.size(), 5) << "a, b, c, d and the new line";
}

/// A tokenizer that has a token for it ends documents with that.
TEST(Rows, EndWithTheTokenForIt) {
  const std::string path = test_data("gpt2");
  if (path.empty()) GTEST_SKIP() << no_test_data("gpt2");
  const RowFiles files("text\nHello world\nHello\n");
  const Dataset data = load_rows(
      files.choice, VocabularyChoice(VocabularyKind::Tokenizer, 0, {"auto", path, "", ""}));
  const auto first = data.texts().rows.text(data.texts().tokens.all(), 0, 0);
  EXPECT_EQ((std::vector<std::int32_t>{first.begin(), first.end()}),
            (std::vector<std::int32_t>{15496, 995, 50256}));
}

/// As token files of that tokenizer do; its new lines are blanks.
TEST(Rows, EndWithTheSeparatorOfBert) {
  const RowFiles files("text\na\nb a\n");
  const auto load = [&](const char* words) {
    const std::string path = files.write("vocab.txt", words);
    return load_rows(files.choice,
                     Vocabulary::tokenizer(load_tokenizer({"BertWordPieceCase", "", path, ""})));
  };
  const Dataset data = load("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n");
  const auto all = data.texts().tokens.all();
  EXPECT_EQ((std::vector<std::int32_t>{all.begin(), all.end()}),
            (std::vector<std::int32_t>{5, 3, 6, 5, 3}));
  const std::string message = message_of([&] { load("[PAD]\n[UNK]\n[MASK]\na\nb\n"); });
  EXPECT_NE(message.find("no token that ends a document"), std::string::npos) << message;
}

TEST(Rows, OfTwoColumnsArePairs) {
  RowFiles files("en,fr\nab,cd\n\"a\tb\",\"c\nd\"\nx,\n,y\nabcd,z\n");
  files.choice.columns = {"fr", "en"};
  files.choice.held_out = 0.2;
  const Dataset data = files.load();
  EXPECT_EQ(rows_text(data), "cd|ab|c\nd|a\tb||x|y||||z|abcd|");
  const PairOptions options = {.source = 4, .target = 5, .pad = 256, .start = 257, .end = 258};
  const Pairs train(data, DataPart::Train, options), held(data, DataPart::Valid, options);
  EXPECT_EQ(train.size(), 4) << "tabs and new lines are text, and a side may be empty";
  EXPECT_EQ(held.size(), 1);
  std::vector<std::int32_t> source(4), ids(5), labels(5);
  train.fill(1, source, ids, labels);
  EXPECT_EQ(source, (std::vector<std::int32_t>{'c', '\n', 'd', 258}));
  EXPECT_EQ(ids, (std::vector<std::int32_t>{257, 'a', '\t', 'b', 256}));
  EXPECT_EQ(labels, (std::vector<std::int32_t>{'a', '\t', 'b', 258, kIgnoredLabel}));
  const PairOptions shorter = {.source = 2, .target = 3, .pad = 256, .start = 257, .end = 258};
  EXPECT_EQ(Pairs(data, DataPart::Train, shorter).left_out(), 2);
  EXPECT_NE(message_of([&] {
              Pairs(data, DataPart::Valid, shorter);
            }).find("has 1 pair, of which none fits"),
            std::string::npos);
}

TEST(Rows, ThatCannotBeSpelledAreNamed) {
  RowFiles files("id,text\n1,ab\n2,\"a\nb\"\n3,az\n");
  const Vocabulary known = Vocabulary::characters("ab\n");
  const std::string message = message_of([&] { load_rows(files.choice, known); });
  EXPECT_NE(message.find("'z', U+007A, is not in the vocabulary"), std::string::npos) << message;
  EXPECT_NE(message.find(text("in column 'text', line 5 of '", files.choice.paths[0], "'")),
            std::string::npos)
      << message;
  EXPECT_NE(message_of([&] {
              load_rows(files.choice, Vocabulary::characters("abz"));
            }).find("as the new line that ends a document"),
            std::string::npos);
  const RowFiles none("text,id\n,1\n");
  EXPECT_NE(message_of([&] { none.load(); }).find("has a text in column 'text'"),
            std::string::npos);
}

TEST(Rows, ToTestOnAreHeldOutAndMayLackLabels) {
  for (const auto& [bytes, unlabelled] : {std::pair("text,label\none,b\ntwo,a\n", false),
                                          {"text\none\ntwo\n", true},
                                          {"text,label\none,-1\ntwo,-1\n", true}}) {
    SCOPED_TRACE(bytes);
    RowFiles files(bytes);
    files.choice.label_column = "label";
    files.choice.known_labels = {"a", "b"};
    files.choice.keeps_labels = files.choice.tests = true;
    const Dataset data = load_rows(files.choice, Vocabulary::bytes());
    EXPECT_EQ(rows_text(data), "||one|two|");
    EXPECT_EQ(data.unlabelled, unlabelled);
    EXPECT_EQ(data.label_names, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(label_numbers(data.texts().labels), unlabelled
                                                      ? std::vector<std::int32_t>(2, kIgnoredLabel)
                                                      : std::vector<std::int32_t>({1, 0}));
    EXPECT_TRUE(data.texts().tokens.train().empty());
  }
}

TEST(Rows, HaveADigestOfTheirTexts) {
  RowFiles files("id,text\n1,ab\n2,c\n");
  const Dataset data = files.load();
  EXPECT_EQ(rows_digest(files.choice), data.digest);
  RowFiles other("text,id\nab,7\nc,8\n");
  EXPECT_EQ(rows_digest(other.choice), data.digest) << "of the column alone";
  RowFiles moved("id,text\n1,a\n2,bc\n");
  EXPECT_NE(rows_digest(moved.choice), data.digest);
}

}  // namespace
}  // namespace tessera
