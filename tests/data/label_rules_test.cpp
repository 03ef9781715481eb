/// Labels that are none, and data whose labels are no classes; rows that do not fit.

#include "tessera/data/label_rules.h"

#include <gtest/gtest.h>

#include <fstream>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/rows.h"
#include "tessera/data/tagged_rows.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

using Words = std::vector<std::string>;

TEST(LabelRules, WordsForNoLabel) {
  struct Case {
    const char* why;
    Words labels, known, none;
  };
  for (const Case& c : {Case{"SNLI of datasets", {"-1", "0", "1", "2"}, {}, {"-1"}},
                        {"SNLI itself", {"neutral", "-", "entailment"}, {}, {"-"}},
                        {"both", {"-", "-1", "a", "b"}, {}, {"-1", "-"}},
                        {"whole numbers with a point", {"-1.0", "0.0", "1.0"}, {}, {"-1.0"}},
                        {"two signs are classes", {"+", "-"}, {}, {}},
                        {"so are 1 and -1", {"-1", "1"}, {}, {}},
                        {"and -2 to 2", {"-2", "-1", "0", "1", "2"}, {}, {}},
                        {"nothing else is there", {"-1", "-"}, {}, {}},
                        {"the model knows it", {"-1", "0", "1"}, {"-1", "0", "1"}, {}},
                        {"the others are words", {"-1", "no", "yes"}, {}, {"-1"}}}) {
    SCOPED_TRACE(c.why);
    EXPECT_EQ(words_for_no_label(c.labels, c.known), c.none);
  }
  EXPECT_EQ(words_for_no_label(Words{"a", "-"}), (Words{"-1", "-1.0", ""})) << "to test on";
}

/// `count` labels, of which every `each`th is `word` and the others are 0 and 1 in turn.
Words labels_with(const char* word, int count, int each) {
  Words out;
  for (int i = 0; i < count; ++i) out.push_back(i % each == 0 ? word : text(i % 2));
  return out;
}

TEST(LabelRules, MinusOneInManyRowsIsUnclear) {
  const auto refusal = [](const Words& labels, const Words& known = {}) {
    return message_of([&] { left_out_labels(labels, known, 0, "'a.tsv', column 'x'"); });
  };
  EXPECT_EQ(refusal(labels_with("-1", 30, 3)),
            "'a.tsv', column 'x': 10 of 30 rows have the label '-1', which is a class, or means "
            "that a row has no label; give --classes 3 to learn it as a class, or --classes 2 to "
            "skip these rows");
  EXPECT_EQ(refusal(labels_with("-", 30, 3)).find("'a.tsv', column 'x': 10 of 30"), 0u);
  const auto out = [](const Words& labels, std::int64_t classes, const Words& known = {}) {
    return left_out_labels(labels, known, classes, "");
  };
  EXPECT_EQ(out(labels_with("-1", 30, 3), 3), Words());
  EXPECT_EQ(out(labels_with("-1", 30, 3), 2), Words{"-1"});
  EXPECT_EQ(out(labels_with("-1", 30, 3), 0, {"0", "1"}), Words{"-1"}) << "the model knows others";
  EXPECT_EQ(out(labels_with("-1", 100, 21), 0), Words{"-1"}) << "few are so";
  EXPECT_EQ(out(labels_with("-1", 19, 3), 0), Words{"-1"}) << "few rows";
}

std::string refused(const Words& names, std::int64_t count, std::int64_t classes = 0) {
  return message_of([&] { require_classes(names, count, "row", classes, "'a.tsv', column 'x'"); });
}

Words numbers_to(int count) {
  Words out;
  for (int i = 0; i < count; ++i) out.push_back(text(i));
  return out;
}

TEST(LabelRules, ScoresIdsAndASingleLabelAreNoClasses) {
  EXPECT_EQ(refused({"0", "0.2", "3.8", "5"}, 1000)
                .find("'a.tsv', column 'x' has scores, like 0.2, not labels"),
            0u);
  EXPECT_NE(refused({"1e-3", "2"}, 10, 2), "") << "whatever --classes says";
  EXPECT_EQ(refused({"0.0", "1.0"}, 10), "") << "whole numbers";
  EXPECT_EQ(refused({"1.5", "v2"}, 10), "") << "a name among them";
  EXPECT_NE(refused(numbers_to(20000), 20000).find("has 20000 labels in 20000 rows"),
            std::string::npos);
  EXPECT_NE(refused(numbers_to(6), 11).find("--classes 6"), std::string::npos);
  EXPECT_EQ(refused(numbers_to(6), 11, 6), "");
  EXPECT_EQ(refused(numbers_to(6), 12), "") << "each twice";
  EXPECT_EQ(refused(numbers_to(9), 9), "") << "few rows";
  EXPECT_NE(refused({"yes"}, 40).find("only one label, 'yes', in all of its 40 rows"),
            std::string::npos);
  EXPECT_EQ(refused({"yes"}, 40, 2), "");
  EXPECT_EQ(refused({"yes"}, 9), "") << "few rows";
}

struct LabelledFile {
  TestFolder folder;
  RowsChoice choice{.columns = {"text"}, .label_column = "label", .held_out = 0};
  explicit LabelledFile(const std::string& bytes, const std::string& name = "rows.tsv") {
    std::ofstream(folder / name) << bytes;
    choice.paths = {folder / name};
    choice.table.bad_rows = BadRows::LeaveOutFew;
  }
  Dataset load() const { return load_rows(choice, VocabularyChoice(VocabularyKind::Bytes)); }
};

/// Without one, as if they were not there: vocabulary, digest and all.
TEST(LabelRules, RowsWithoutALabelAreLeftOut) {
  LabelledFile some("text\tlabel\na\t-1\nb\t0\nc\t1\nd\t-\ne\t1\n");
  some.choice.valid_paths = {some.folder / "valid.tsv"};
  std::ofstream(some.choice.valid_paths[0]) << "text\tlabel\nx\t1\ny\t-1\n";
  const Dataset data = some.load();
  EXPECT_EQ(data.label_names, (Words{"0", "1"}));
  EXPECT_EQ(label_numbers(data.texts().labels), (std::vector<std::int32_t>{0, 1, 1, 1}));
  EXPECT_EQ(data.texts().rows.train, 3);
  EXPECT_NE(data.notice.find("1 row of '" + some.choice.paths[0] + "' has the label -1"),
            std::string::npos)
      << data.notice;
  EXPECT_NE(data.notice.find("has the label -,"), std::string::npos) << data.notice;
  EXPECT_NE(data.notice.find("valid.tsv' has the label -1"), std::string::npos);
  const LabelledFile without("text\tlabel\nb\t0\nc\t1\ne\t1\n");
  EXPECT_EQ(rows_digest(some.choice), rows_digest(without.choice));
  EXPECT_EQ(data.digest, without.load().digest);
}

TEST(LabelRules, OfATestSomeRowsMayLackALabel) {
  for (const auto& [name, bytes] :
       {std::pair("t.tsv", "text\tlabel\na\t-1\nb\tno\nc\t\nd\tYES\n"),
        {"t.jsonl",
         "{\"text\": \"a\"}\n{\"text\": \"b\", \"label\": \"no\"}\n"
         "{\"text\": \"c\", \"label\": null}\n{\"text\": \"d\", \"label\": \"yes\"}\n"}}) {
    SCOPED_TRACE(name);
    LabelledFile file(bytes, name);
    file.choice.known_labels = {"no", "yes"};
    file.choice.keeps_labels = file.choice.tests = true;
    const Dataset data = file.load();
    EXPECT_EQ(label_numbers(data.texts().labels),
              (std::vector<std::int32_t>{kIgnoredLabel, 0, kIgnoredLabel, 1}));
    EXPECT_FALSE(data.unlabelled);
    EXPECT_EQ(data.notice, "2 of 4 rows have no label, and are not scored");
  }
}

TEST(LabelRules, RowsWithALabelAndNoTextAreTold) {
  const LabelledFile file("text\tlabel\n\tyes\nb\tno\n\tno\n");
  const Dataset data = file.load();
  EXPECT_EQ(data.texts().rows.rows(), 3);
  EXPECT_EQ(
      data.notice,
      "2 rows have no text in column 'text', and the model sees only special tokens for them");
}

TEST(LabelRules, LabelsInAnotherCaseAreThoseOfTheModel) {
  LabelledFile file("text\tlabel\na\tneutral\nb\tentailment\nc\tNeutral\n");
  file.choice.known_labels = {"ENTAILMENT", "NEUTRAL", "CONTRADICTION"};
  const Dataset data = file.load();
  EXPECT_EQ(data.label_names, file.choice.known_labels);
  EXPECT_EQ(label_numbers(data.texts().labels), (std::vector<std::int32_t>{1, 0, 1}));
}

TEST(BadRowsOfTables, AreLeftOutWhereTheyAreFew) {
  std::string bytes = "id\ttext\tlabel\n";
  for (int i = 0; i < 19; ++i) bytes += text(i, "\tword\t", i % 2, "\n");
  const LabelledFile one(bytes + "7\t0\n");
  EXPECT_EQ(one.load().texts().rows.rows(), 19);
  EXPECT_EQ(one.load().notice,
            text("'", one.choice.paths[0], "' line 21 has 2 fields but there are 3 columns, 'id', ",
                 "'text', 'label': 1 row, which is skipped"));
  LabelledFile many(bytes + "7\t0\n8\t0\n9\ta\tb\t0\n");
  EXPECT_NE(message_of([&] { many.load(); })
                .find("the first of 3 such rows; give every row a field for each, or skip such "
                      "rows with --skip-bad-rows"),
            std::string::npos);
  many.choice.table.bad_rows = BadRows::LeaveOut;
  EXPECT_NE(many.load().notice.find("the first of 3 such rows, which are skipped"),
            std::string::npos);
  LabelledFile json(
      "{\"text\": \"a\", \"label\": 0}\n{\"text\": \"b\"}\n{\"text\": \"c\", "
      "\"label\": 1}\nnone\n",
      "a.jsonl");
  EXPECT_NE(message_of([&] { json.load(); }).find("line 2 has no key 'label'"), std::string::npos);
  json.choice.table.bad_rows = BadRows::LeaveOut;
  EXPECT_EQ(json.load().texts().rows.rows(), 2);
}

TEST(LabelRules, OfWords) {
  const TestFolder folder;
  RowsChoice choice{.paths = {folder / "a.txt"}, .held_out = 0};
  std::ofstream(choice.paths[0]) << "Al\tO\nmet\tO\n\nBo\tO\na\tO\nb\tO\nc\tO\n"
                                    "d\tO\ne\tO\nf\tO\ng\tO\nh\tO\n";
  const auto load = [&] { load_tagged_rows(choice, VocabularyChoice(VocabularyKind::Bytes)); };
  EXPECT_NE(message_of(load).find("has only one label, 'O', in all of its 11 words"),
            std::string::npos)
      << message_of(load);
  choice.classes = 3;
  EXPECT_EQ(message_of(load), "");
}

}  // namespace
}  // namespace tessera
