/// Labels of rows, what stands around texts, how they are cut.

#include "tessera/data/labelled_texts.h"

#include <gtest/gtest.h>

#include <map>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/rows.h"
#include "tessera/files/file.h"
#include "tessera/files/table_file.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;

std::string put(const TestFolder& folder, const std::string& name, const std::string& bytes) {
  write_atomically(folder / name, bytes);
  return folder / name;
}

TEST(RowLabels, AreNumberedByValueWhereAllAreNumbers) {
  const auto sorted = [](std::vector<std::string> labels) { return sorted_label_names(labels); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(sorted({"10", "2", "2", "-1"}), (Names{"-1", "2", "10"}));
  EXPECT_EQ(sorted({"no", "yes", "no"}), (Names{"no", "yes"}));
  EXPECT_EQ(sorted({"10", "2", "x"}), (Names{"10", "2", "x"})) << "as texts";
  EXPECT_EQ(sorted({"10.0", "2.0", "0.0"}), (Names{"0.0", "2.0", "10.0"}));
  const LabelNumbers numbers(Names{"a", "b", "ENTAILMENT", "No", "no", "\xC3\x84"});
  EXPECT_EQ(numbers.of("b"), 1);
  EXPECT_EQ(numbers.of("c"), -1);
  EXPECT_EQ(numbers.of("entailment"), 2) << "another case alone";
  EXPECT_EQ(numbers.of("no"), 4) << "exactly so";
  EXPECT_EQ(numbers.of("NO"), -1) << "of two it could be";
  EXPECT_EQ(numbers.of("\xC3\xA4"), 5);
  const Names odd = {"a\"b", "", "ü"};
  EXPECT_EQ(parse_label_names(label_names_json(odd), "here"), odd);
  EXPECT_EQ(message_of([] { parse_label_names("[\"a\",\"a\"]", "here"); }).substr(0, 10),
            "here: its ");
  EXPECT_TRUE(are_unnamed_labels(Names{"LABEL_0", "LABEL_1"}));
  EXPECT_FALSE(are_unnamed_labels(Names{"LABEL_1", "LABEL_0"}));
}

/// As the library tokenizers 0.23.3 does with these lengths.
TEST(TextFrame, TheLongerTextIsCutFirst) {
  struct Case {
    std::int64_t first, second, room, kept_first, kept_second;
  };
  for (const Case& c :
       {Case{3, 4, 10, 3, 4}, Case{10, 4, 10, 6, 4}, Case{4, 10, 10, 4, 6}, Case{10, 10, 13, 6, 7},
        Case{11, 10, 13, 7, 6}, Case{9, 10, 12, 6, 6}, Case{20, 2, 1, 1, 0}, Case{0, 5, 3, 0, 3}}) {
    const KeptTokens kept = longest_first(c.first, c.second, c.room);
    EXPECT_EQ(kept.first, c.kept_first) << c.first << " " << c.second << " " << c.room;
    EXPECT_EQ(kept.second, c.kept_second) << c.first << " " << c.second << " " << c.room;
  }
}

TEST(TextFrame, SpecialTokensStandAroundTexts) {
  const Ids a = {1, 2, 3}, b = {4, 5};
  const std::span<const std::int32_t> texts[] = {a, b};
  const FramedTexts bert = framed(text_frame(100, 101, false), texts, 16);
  EXPECT_EQ(bert.ids, (Ids{100, 1, 2, 3, 101, 4, 5, 101}));
  EXPECT_EQ(bert.types, (Ids{0, 0, 0, 0, 0, 1, 1, 1}));
  const FramedTexts roberta = framed(text_frame(100, 101, true), texts, 8);
  EXPECT_EQ(roberta.ids, (Ids{100, 1, 2, 101, 101, 4, 5, 101})) << "cut to 8";
  EXPECT_EQ(roberta.types, Ids(8, 0));
  EXPECT_EQ(framed(text_frame(100, 101, false), std::span(texts).first(1), 4).ids,
            (Ids{100, 1, 2, 101}));
  EXPECT_EQ(framed(TextFrame(), texts, 16).ids, (Ids{1, 2, 3, 4, 5}));
}

TEST(TableColumns, AreFoundInEveryFormat) {
  const TestFolder folder;
  using Names = std::vector<std::string>;
  EXPECT_EQ(table_columns(put(folder, "a.tsv", "\xEF\xBB\xBFQuality\t#1 String\n1\ta\n")),
            (Names{"Quality", "#1 String"}));
  EXPECT_EQ(table_columns(put(folder, "a.csv", "\"a,b\",c\n1,2\n")), (Names{"a,b", "c"}));
  EXPECT_EQ(table_columns(put(folder, "a.jsonl", "\n{\"x\": 1, \"y\": {\"z\": [2]}}\n")),
            (Names{"x", "y", "y.z"}));
  EXPECT_EQ(table_columns(put(folder, "b.csv", "1,2\n"), {.names = {"p", "q"}}), (Names{"p", "q"}));
}

Dataset labelled(const TestFolder& folder, const std::string& train, const std::string& held_out,
                 RowsChoice choice = {}) {
  choice.paths = {put(folder, "train.tsv", train)};
  choice.valid_paths = {put(folder, "dev.tsv", held_out)};
  choice.columns = {"a", "b"};
  choice.label_column = "label";
  return load_rows(choice, Vocabulary::bytes());
}

TEST(LabelledTexts, AreSamplesInTheOrderOfTheRows) {
  const TestFolder folder;
  const Dataset data =
      labelled(folder, "a\tb\tlabel\nx\tyz\tno\n\tu\tyes\n", "a\tb\tlabel\npq\tr\tyes\n");
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(label_numbers(data.texts().labels), (Ids{0, 1, 1}));
  const TextFrame frame = text_frame(256, 257, false);
  EXPECT_EQ(longest_sample(data, frame), 6);
  const auto samples = labelled_texts(
      data, DataPart::Valid,
      {.context = 8, .frame = frame, .pad = 255, .types = true, .mask = true, .last = true});
  EXPECT_EQ(samples->size(), 1);
  std::map<std::string, Ids> memory = {{"ids", Ids(16)},
                                       {"types", Ids(16)},
                                       {"mask", Ids(16)},
                                       {"last", Ids(2)},
                                       {"labels", Ids(2)}};
  BatchInputs batch("evaluate");
  for (auto& [name, values] : memory)
    batch.add(name, {DType::I32, Shape{static_cast<std::int64_t>(values.size())}, {}},
              reinterpret_cast<std::byte*>(values.data()));
  samples->fill(0, 2, batch);
  EXPECT_EQ(memory["ids"],
            (Ids{256, 'p', 'q', 257, 'r', 257, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}));
  EXPECT_EQ(memory["types"], (Ids{0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(memory["mask"], (Ids{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(memory["last"], (Ids{5, 0}));
  EXPECT_EQ(memory["labels"], (Ids{1, kIgnoredLabel}));
}

TEST(LabelledTexts, TheLastTokenIsNotPadding) {
  const TestFolder folder;
  const Dataset data = labelled(folder, "a\tb\tlabel\nx\ty\tno\nx\ty\tyes\n",
                                "a\tb\tlabel\npz\tqzz\tyes\nzz\tz\tno\nz\tpq\tno\n");
  const auto lasts = [&](std::optional<std::int32_t> not_last) {
    const auto samples = labelled_texts(
        data, DataPart::Valid, {.context = 8, .pad = 'z', .not_last = not_last, .last = true});
    std::map<std::string, Ids> memory = {{"ids", Ids(24)}, {"last", Ids(3)}, {"labels", Ids(3)}};
    BatchInputs batch("evaluate");
    for (auto& [name, values] : memory)
      batch.add(name, {DType::I32, Shape{static_cast<std::int64_t>(values.size())}, {}},
                reinterpret_cast<std::byte*>(values.data()));
    samples->fill(0, 3, batch);
    return memory["last"];
  };
  EXPECT_EQ(lasts(std::nullopt), (Ids{4, 2, 2}));
  EXPECT_EQ(lasts('z'), (Ids{2, 0, 2}));  // of nothing but padding the first, as in transformers
}

TEST(LabelledTexts, LabelsAreNotBlank) {
  const TestFolder folder;
  const std::string train = "a\tb\tlabel\nx\ty\t1 \nx\ty\t0\nx\ty\t1\n";
  const Dataset data = labelled(folder, train, "a\tb\tlabel\nx\ty\t 0\n");
  EXPECT_EQ(data.label_names, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(label_numbers(data.texts().labels), (Ids{1, 0, 1, 0}));
  for (const char* const blank : {"", " "}) {
    const std::string message =
        message_of([&] { labelled(folder, text(train, "x\ty\t", blank, "\n"), train); });
    EXPECT_NE(message.find("train.tsv' line 5: column 'label' has no label; give the row one, or "
                           "leave it out"),
              std::string::npos)
        << message;
  }
}

TEST(LabelledTexts, LabelsOfAModelStay) {
  const TestFolder folder;
  const std::string train = "a\tb\tlabel\nx\ty\tno\n", dev = "a\tb\tlabel\nx\ty\tno\n";
  const RowsChoice known{.known_labels = {"yes", "no"}}, other{.known_labels = {"p", "q"}};
  EXPECT_EQ(labelled(folder, train, dev, known).label_names, known.known_labels);
  EXPECT_EQ(labelled(folder, train, dev, other).label_names, std::vector<std::string>{"no"});
  RowsChoice only = other;
  only.keeps_labels = true;
  EXPECT_NE(message_of([&] { labelled(folder, train, dev, only); })
                .find("train.tsv' line 2: column 'label' has the label 'no', which is not among "
                      "the model's labels: 'p', 'q'"),
            std::string::npos);
  EXPECT_NE(message_of([&] { labelled(folder, train, dev + "x\ty\tmaybe\n"); })
                .find("dev.tsv' line 3: column 'label' has the label 'maybe', which is not among "
                      "the labels of the training rows: 'no'"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
