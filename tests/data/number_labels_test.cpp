/// Labels of rows that are numbers, and of which a row has several: how they are written, and what
/// is refused.

#include <gtest/gtest.h>

#include <fstream>

#include "files/test_data.h"
#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/labelled_texts.h"
#include "tessera/data/rows.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

struct NumberRows {
  TestFolder folder;
  RowsChoice choice{
      .columns = {"text"}, .label_column = "label", .labels = &kNumberLabels, .held_out = 0};

  explicit NumberRows(const std::string& bytes, const std::string& name = "rows.csv") {
    choice.paths = {write(name, bytes)};
  }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / name) << bytes;
    return folder / name;
  }
  Dataset load() const { return load_rows(choice, VocabularyChoice(VocabularyKind::Bytes)); }
  /// "a b: 1 0, 0 1, none": names, and numbers of each row.
  std::string labels() const {
    const Dataset data = load();
    std::vector<std::string> rows;
    for (const RowLabel& label : data.texts().labels) {
      std::vector<std::string> numbers;
      for (const float number : label.numbers()) numbers.push_back(format("%.7g", number));
      rows.push_back(label.none() ? "none" : join(numbers, " "));
    }
    return text(join(data.label_names, " "), ": ", join(rows));
  }
  std::string refusal() const {
    try {
      return text("none: ", labels());
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Data);
      std::string out = error.what();
      for (std::size_t at; (at = out.find(folder.path() + "/")) != out.npos;)
        out.erase(at, folder.path().size() + 1);
      return out;
    }
  }
};

TEST(NumberLabels, AreWrittenInSeveralWays) {
  const struct {
    const char *why, *file, *column, *bytes, *labels;
  } rows[] = {
      {"one", "a.csv", "label", "text,label\na, 0.25 \nb,-3\nc,+1e2\n", "LABEL_0: 0.25, -3, 100"},
      {"of JSON", "a.jsonl", "label",
       "{\"text\": \"a\", \"label\": 2}\n{\"text\": \"b\", \"label\": 2.5}\n", "LABEL_0: 2, 2.5"},
      {"a list", "a.jsonl", "label",
       "{\"text\": \"a\", \"label\": [1, 2.5]}\n{\"label\": [-1e-3, 0], \"text\": \"b\"}\n",
       "LABEL_0 LABEL_1: 1 2.5, -0.001 0"},
      {"texts of a list", "a.tsv", "label", "text\tlabel\na\t[1, \"2\"]\n", "LABEL_0 LABEL_1: 1 2"},
      {"with commas", "a.tsv", "label", "text\tlabel\na\t1, 2\nb\t3,4\n",
       "LABEL_0 LABEL_1: 1 2, 3 4"},
      {"columns", "a.csv", "x, y", "y,text,x\n1,a,2\n3,b,4\n", "x y: 2 1, 4 3"},
      {"a column whose name has a comma", "a.csv", "x,y", "\"x,y\",text\n1,a\n", "LABEL_0: 1"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    NumberRows of(row.bytes, row.file);
    of.choice.label_column = row.column;
    EXPECT_EQ(of.labels(), row.labels);
  }
}

TEST(NumberLabels, OfATestMayBeMissing) {
  NumberRows of("text,label\na,1.5\nb,\n");
  of.choice.tests = of.choice.keeps_labels = true;
  of.choice.known_labels = {"score"};
  EXPECT_EQ(of.labels(), "score: 1.5, none");
  of.choice.paths = {of.write("none.csv", "text\na\n")};
  EXPECT_TRUE(of.load().unlabelled);
  of.choice.paths = {
      of.write("some.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\", \"label\": 2}\n")};
  EXPECT_EQ(of.labels(), "score: none, 2");
}

TEST(NumberLabels, WhatIsNoneIsNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {"text,label\na,1\nb,good\n",
       "'rows.csv' line 3: column 'label' has 'good', and task regression learns finite numbers; "
       "correct it, or give --task sequence_classification to learn names"},
      {"text,label\na,nan\n", "'rows.csv' line 2: column 'label' has 'nan', and task"},
      {"text,label\na,1\nb,inf\n", "'rows.csv' line 3: column 'label' has 'inf', and task"},
      {"text,label\na,1\nb,\n", "'rows.csv' line 3: column 'label' has no label; give the row one"},
      {"text,label\na,1e30\n",
       "'rows.csv' line 2: column 'label' has 1e30, and numbers to learn lie"},
      {"text,label\na,\"1,2\"\n\nb,3\n",
       "'rows.csv' line 4: column 'label' has 1 number, and line 2 has 2; give each row as many"},
      {"text,label\na,[]\n", "'rows.csv' line 2: column 'label' has 0 numbers; give each row"},
      {"text,label\na,[{}]\n",
       "'rows.csv' line 2: column 'label' is '[{}]', which begins as a JSON"},
  };
  for (const auto& [bytes, told] : rows) {
    const std::string found = NumberRows(bytes).refusal();
    EXPECT_EQ(found.substr(0, std::string_view(told).size()), told) << found;
  }
  NumberRows of("text,label\na,1\n");
  of.choice.classes = 3;
  EXPECT_EQ(
      of.refusal(),
      "'rows.csv' line 2: column 'label' has 1 number, and classes is 3; give each row as many");
  of.choice.known_labels = {"x", "y"};
  of.choice.tests = of.choice.keeps_labels = true;
  EXPECT_EQ(of.refusal(),
            "'rows.csv' line 2: column 'label' has 1 number, and the model predicts 2; "
            "give each row as many");
  EXPECT_EQ(
      NumberRows("{\"text\": \"a\", \"label\": [1, null]}\n", "a.jsonl").refusal(),
      "'a.jsonl' line 1: the list of key 'label' has null, and texts, numbers, true and false "
      "are expected; give it these");
  EXPECT_EQ(
      NumberRows("{\"text\": \"a\", \"label\": [1, [2]]}\n", "a.jsonl").refusal().substr(0, 48),
      "'a.jsonl' line 1: the list of key 'label' has a ");
}

TEST(NumberLabels, OfSeveralColumnsAreNamed) {
  NumberRows of("text,x,y\na,1,2\nb,3,\n");
  of.choice.label_column = "x,y";
  EXPECT_EQ(of.refusal().substr(0, 43), "'rows.csv' line 3: column 'y' has '', and t");
  of.choice.paths = {of.write("good.csv", "text,x,y\na,1,2\n")};
  for (const auto& [columns, what] : {std::pair("x,x", "names 'x' twice; give each column once"),
                                      std::pair("x,text",
                                                "names 'text', which is a column of "
                                                "texts; give columns of labels")}) {
    of.choice.label_column = columns;
    try {
      of.load();
      ADD_FAILURE() << columns;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      EXPECT_EQ(error.what(), text("label-column ", columns, " ", what));
    }
  }
  of.choice.label_column = "x,y";
  of.choice.valid_paths = {of.write("valid.csv", "text,x,y\na,1,2\n")};
  EXPECT_EQ(of.labels(), "x y: 1 2, 1 2");
  of.choice.tests = of.choice.keeps_labels = true;
  of.choice.known_labels = {"x", "y"};
  EXPECT_EQ(of.labels().substr(0, 5), "x y: ");
  of.choice.label_column = "y,x";
  EXPECT_EQ(of.refusal(),
            "'good.csv', column 'y,x': the model predicts these in another order, 'x', 'y'; name "
            "them in it");
}

TEST(NumberLabels, AreAsManyInEachFile) {
  NumberRows of("text,label\na,1\n");
  of.choice.valid_paths = {of.write("valid.csv", "text,label\na,\"1,2\"\n")};
  EXPECT_EQ(of.refusal(),
            text("'valid.csv' line 2: column 'label' has 2 numbers, and line 2 of 'rows.csv' has "
                 "1; give each row as many"));
}

TEST(LabelSets, AreWrittenInSeveralWays) {
  const struct {
    const char *why, *file, *column, *bytes, *labels;
  } rows[] = {
      {"names with commas, and none", "a.csv", "label", "text,label\na,\"red, blue\"\nb,\nc,red\n",
       "blue red: 1 1, 0 0, 0 1"},
      {"a list of names", "a.jsonl", "label",
       "{\"text\": \"a\", \"label\": [\"red\", \"sea, blue\"]}\n{\"text\": \"b\", \"label\": []}\n",
       "red sea, blue: 1 1, 0 0"},
      {"a list of numbers", "a.jsonl", "label",
       "{\"text\": \"a\", \"label\": [27, 3]}\n{\"text\": \"b\", \"label\": [3]}\n",
       "3 27: 1 1, 1 0"},
      {"1 or 0 for each label", "a.jsonl", "label",
       "{\"text\": \"a\", \"label\": [1, 0, 0.0]}\n{\"text\": \"b\", \"label\": [true, 1, "
       "false]}\n",
       "LABEL_0 LABEL_1 LABEL_2: 1 0 0, 1 1 0"},
      {"sets of the names 0 and 1", "a.jsonl", "label",
       "{\"text\": \"a\", \"label\": [0, 1]}\n{\"text\": \"b\", \"label\": [0]}\n",
       "0 1: 1 1, 1 0"},
      {"columns", "a.csv", "toxic,rude", "text,rude,toxic\na,1,0\nb,0,0\n", "toxic rude: 0 1, 0 0"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    NumberRows of(row.bytes, row.file);
    of.choice.labels = &kLabelSets;
    of.choice.label_column = row.column;
    EXPECT_EQ(of.labels(), row.labels);
  }
  NumberRows bars("text,label\na,red|blue\n");
  bars.choice.labels = &kLabelSets;
  bars.choice.label_separator = "|";
  EXPECT_EQ(bars.labels(), "blue red: 1 1");
  bars.choice.label_separator = ",";
  EXPECT_EQ(bars.labels(), "red|blue: 1");
  EXPECT_EQ(bars.load().notice,
            "no row has several labels, with ',' between them, but 'red|blue' is one; if it is "
            "several, give --label-separator '|'");
  bars.choice.paths = {bars.write("both.csv", "text,label\na,red|blue\nb,\"red,blue\"\n")};
  EXPECT_EQ(bars.load().notice, "");
}

TEST(LabelSets, OfAModelKeepTheirNumbers) {
  NumberRows of("text,label\na,red\nb,\n");
  of.choice.labels = &kLabelSets;
  of.choice.known_labels = {"red", "green", "blue"};
  EXPECT_EQ(of.labels(), "red green blue: 1 0 0, 0 0 0");
  of.choice.tests = of.choice.keeps_labels = true;
  EXPECT_EQ(of.labels(), "red green blue: 1 0 0, 0 0 0");
  of.choice.paths = {
      of.write("flags.jsonl", "{\"text\": \"a\", \"label\": [0, 0, 1]}\n{\"text\": \"b\"}\n")};
  EXPECT_EQ(of.labels(), "red green blue: 0 0 1, none");
  of.choice.paths = {of.write("pink.csv", "text,label\na,\"red,pink\"\n")};
  EXPECT_EQ(of.refusal(),
            "'pink.csv' line 2: column 'label' has the label 'pink', which is not among "
            "the model's labels: 'red', 'green', 'blue'; correct it, or train on rows "
            "with all labels");
}

TEST(LabelSets, WhatIsNoneIsNamed) {
  const auto refusal = [](const char* bytes, const char* name, const char* column) {
    NumberRows of(bytes, name);
    of.choice.labels = &kLabelSets;
    of.choice.label_column = column;
    return of.refusal();
  };
  EXPECT_EQ(refusal("text,x,y\na,1,0\nb,2,0\n", "a.csv", "x,y"),
            "'a.csv' line 3: column 'x' has '2' where 1 or 0 says whether the row has a label; "
            "correct it");
  EXPECT_EQ(refusal("text,x,y\na,1,0\nb,0,\n", "a.csv", "x,y").substr(0, 36),
            "'a.csv' line 3: column 'y' has '' wh");
  EXPECT_EQ(
      refusal("text,label\na,\nb,\n", "a.csv", "label"),
      "'a.csv', column 'label' has no label in any row, so there is nothing to learn; give rows "
      "with labels");
  EXPECT_EQ(refusal("{\"text\": \"a\", \"label\": \"\"}\n", "a.jsonl", "label").substr(0, 46),
            "'a.jsonl' line 1: column 'label' has no label;");
  NumberRows of("text,label\na,red\n");
  of.choice.labels = &kLabelSets;
  of.choice.valid_paths = {of.write("valid.csv", "text,label\na,blue\n")};
  EXPECT_EQ(of.refusal(),
            "'valid.csv' line 2: column 'label' has the label 'blue', which is not among "
            "the labels of the training rows: 'red'; correct it, or train on rows with "
            "all labels");
}

TEST(NumberLabels, AreInputsOfF32) {
  NumberRows of("text,label\na,\"1,2\"\nb,\"3,4\"\n");
  of.choice.valid_paths = {of.write("valid.csv", "text,label\na,\"5,6\"\n")};
  const Dataset data = of.load();
  const LabelledTextsOptions options{.context = 4, .numbers = 3};
  const auto samples = labelled_texts(data, DataPart::Valid, options);
  std::vector<std::int32_t> ids(8);
  std::vector<float> labels(6);
  BatchInputs batch("test");
  batch.add("ids", {DType::I32, {2, 4}, {}}, reinterpret_cast<std::byte*>(ids.data()));
  batch.add("labels", {DType::F32, {2, 3}, {}}, reinterpret_cast<std::byte*>(labels.data()));
  samples->fill(0, 2, batch);
  EXPECT_EQ(labels, (std::vector<float>{5, 6, 0, kIgnoredNumber, kIgnoredNumber, kIgnoredNumber}));
}

}  // namespace
}  // namespace tessera
