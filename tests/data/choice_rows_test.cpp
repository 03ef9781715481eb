/// Rows of a text and its choices: which forms are read, which choice a label is, what is refused;
/// and their samples.

#include "tessera/data/choice_rows.h"

#include <gtest/gtest.h>

#include <map>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/choices.h"
#include "tessera/data/dataset.h"
#include "tessera/data/text_groups.h"
#include "tessera/files/file.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;
using Words = std::vector<std::string>;

struct ChoiceForm {
  const char *name, *file, *bytes;
  Words text, choices;  // columns
  Words texts;          // of the first row, and its choices
  std::int32_t label;
};

const ChoiceForm kForms[] = {
    {"SWAG: the second text begins each choice",
     "a.csv",
     "sent1,sent2,e0,e1,label\n\"He sat, then\",he,ran,slept,1\n",
     {"sent1", "sent2"},
     {"e0", "e1"},
     {"He sat, then", "he ran", "he slept"},
     1},
    {"a list",
     "a.jsonl",
     R"({"q": "x", "c": ["a", 7, "c"], "l": 2})",
     {"q"},
     {"c"},
     {"x", "a", "7", "c"},
     2},
    {"a list and a letter",
     "a.jsonl",
     R"({"q": "x", "c": ["a", "b"], "l": "B"})",
     {"q"},
     {"c"},
     {"x", "a", "b"},
     1},
    {"ARC: two lists, labels that count from 1",
     "a.jsonl",
     R"({"c": {"text": ["a", "b"], "label": ["1", "2"]}, "q": "x", "l": "2"})",
     {"q"},
     {"c"},
     {"x", "a", "b"},
     1},
    {"ARC's own file: objects within the question",
     "a.jsonl",
     R"({"q": {"stem": "x", "c": [{"text": "a", "label": "A"}, {"text": "b", "label": "B"}]}, "l": "A"})",
     {"q.stem"},
     {"q.c"},
     {"x", "a", "b"},
     0},
    {"a list of texts by its key",
     "a.jsonl",
     R"({"c": {"text": ["a", "b"]}, "q": "x", "l": 1.0})",
     {"q"},
     {"c.text"},
     {"x", "a", "b"},
     1},
    {"a list in a cell of TSV",
     "a.tsv",
     "q\tc\tl\nx\t[\"a\", \"b\"]\t0\n",
     {"q"},
     {"c"},
     {"x", "a", "b"},
     0},
    {"fewer choices than columns",
     "a.csv",
     "q,c0,c1,c2,l\nx,a,b,,1\n",
     {"q"},
     {"c0", "c1", "c2"},
     {"x", "a", "b"},
     1},
};

RowsChoice choice_of(const TestFolder& folder, const char* file, const std::string& bytes,
                     const Words& columns, const Words& choices) {
  write_atomically(folder / file, bytes);
  RowsChoice out{.paths = {folder / file}, .columns = columns, .choice_columns = choices};
  out.label_column = "l";
  out.held_out = 0;
  return out;
}

std::string bytes_of(const Dataset& data, std::int64_t row, std::int64_t column) {
  const auto ids = data.texts().rows.text(data.texts().tokens.all(), row, column);
  return {ids.begin(), ids.end()};
}

TEST(ChoiceRows, AreReadInEveryForm) {
  for (const ChoiceForm& form : kForms) {
    SCOPED_TRACE(form.name);
    const TestFolder folder;
    RowsChoice choice = choice_of(folder, form.file, form.bytes, form.text, form.choices);
    if (std::string_view(form.bytes).starts_with("sent1")) choice.label_column = "label";
    const Dataset data = load_choices(choice, Vocabulary::bytes());
    ASSERT_EQ(data.texts().rows.columns, std::ssize(form.texts));
    for (std::size_t i = 0; i < form.texts.size(); ++i)
      EXPECT_EQ(bytes_of(data, 0, static_cast<std::int64_t>(i)), form.texts[i]);
    EXPECT_EQ(label_numbers(data.texts().labels), Ids{form.label});
    EXPECT_TRUE(data.label_names.empty());
    EXPECT_EQ(data.digest, choices_digest(choice));
  }
}

TEST(ChoiceRows, AreRefusedWithFileAndLine) {
  const std::pair<const char*, const char*> bad[] = {
      {R"({"q": "x", "c": ["a"], "l": 0})", "a.jsonl' line 2 has 1 choice, and there is nothing"},
      {R"({"q": "x", "c": ["a", " "], "l": 0})", "line 2 has no text as choice 1, from 0"},
      {R"({"q": "x", "c": "a", "l": 0})", "line 2: column 'c' has 'a' where choices belong"},
      {R"({"q": "x", "c": [["a"], "b"], "l": 0})", "where choices belong"},
      {R"({"q": "x", "c": {"label": ["A", "B"]}, "l": 0})", "where choices belong"},
      {R"({"q": "x", "c": {"text": ["a", "b"], "label": ["A"]}, "l": "A"})",
       "where choices belong"},
      {R"({"q": "x", "c": [{"text": "a", "label": "A"}, {"text": "b"}], "l": "A"})",
       "where choices belong"},
      {R"({"q": "x", "c": ["a", "b"], "l": 2})",
       "line 2: column 'l' has the label '2', and the row has 2 choices; give a number from 0 to "
       "1, "
       "or a letter from A to B"},
      {R"({"q": "x", "c": ["a", "b"], "l": "C"})", "has the label 'C'"},
      {R"({"q": "x", "c": ["a", "b"], "l": -2})", "has the label '-2'"},
      {R"({"q": "x", "c": ["a", "b"], "l": 0.5})", "has the label '0.5'"},
      {R"({"q": "x", "c": {"text": ["a", "b"], "label": ["A", "B"]}, "l": 1})",
       "has the label '1', and its choices are called 'A', 'B'"},
      {R"({"q": "x", "c": ["a", "b"], "l": -1})", "column 'l' has no label"},
      {R"({"q": "x", "c": ["a", "b"], "l": ""})", "column 'l' has no label"},
      {R"({"q": "x", "c": ["a", "b"]})", "line 2 has no key 'l'"},
      {R"({"q": "x", "l": 0})", "line 2 has no key 'c'"},
      {R"({"q": ["x"], "c": ["a", "b"], "l": 0})", "key 'q' is a list"},
      {R"({"q": "x", "c": null, "l": 0})", "key 'c' is null"},
      {R"({"q": "", "c": ["a", "b"], "l": 0})", "the text has no token"},
      {R"({"q": "x", "c": ["a", "b", "c", "d", "e"], "l": 0})",
       "line 2 has 5 choices, and texts is 4; give --texts 5 or more"},
  };
  for (const auto& [line, says] : bad) {
    SCOPED_TRACE(line);
    const TestFolder folder;
    const std::string good = R"({"q": "x", "c": ["a", "b"], "l": 1})";
    RowsChoice choice = choice_of(folder, "a.jsonl", text(good, "\n", line, "\n"), {"q"}, {"c"});
    choice.most_choices = 4;
    const std::string said = message_of([&] { load_choices(choice, Vocabulary::bytes()); });
    EXPECT_NE(said.find(says), std::string::npos) << said;
  }
}

TEST(ChoiceRows, OfTestsMayLackLabels) {
  const TestFolder folder;
  RowsChoice choice =
      choice_of(folder, "a.jsonl",
                "{\"q\": \"x\", \"c\": [\"a\", \"b\"], \"l\": 1}\n{\"q\": \"y\", \"c\": [\"a\", "
                "\"b\", \"c\"]}\n{\"q\": \"z\", \"c\": [\"a\", \"b\"], \"l\": -1}\n",
                {"q"}, {"c"});
  choice.tests = true;
  const Dataset some = load_choices(choice, Vocabulary::bytes());
  EXPECT_EQ(label_numbers(some.texts().labels), (Ids{1, kIgnoredLabel, kIgnoredLabel}));
  EXPECT_FALSE(some.unlabelled);
  EXPECT_EQ(some.notice, "2 of 3 rows have no label, and are not scored");
  EXPECT_EQ(some.texts().rows.columns, 4);
  choice.reads_labels = false;
  EXPECT_TRUE(load_choices(choice, Vocabulary::bytes()).unlabelled);
}

TEST(ChoiceRows, AreSamplesOfPairs) {
  const TestFolder folder;
  RowsChoice choice = choice_of(folder, "a.csv", "q,c0,c1,c2,l\nx,a,b,,1\npq,r,stuvw,y,2\n", {"q"},
                                {"c0", "c1", "c2"});
  const Dataset data = load_choices(choice, Vocabulary::bytes());
  const TextFrame frame = text_frame(256, 257, false);
  EXPECT_EQ(longest_of_groups(data, frame, /*pairs=*/true), 2 + 3 + 5);
  choice.valid_paths = choice.paths;
  const Dataset both = load_choices(choice, Vocabulary::bytes());
  const auto samples = text_groups(
      both, DataPart::Valid,
      {.context = 8, .texts = 4, .pairs = true, .frame = frame, .pad = 255, .types = true});
  EXPECT_EQ(samples->size(), 2);
  EXPECT_NE(samples->notice().find("1 sample"), std::string::npos) << samples->notice();
  const std::size_t all = 3 * 4 * 8;
  std::map<std::string, Ids> memory = {
      {"ids", Ids(all)}, {"types", Ids(all)}, {"mask", Ids(all)}, {"labels", Ids(3)}};
  BatchInputs batch("evaluate");
  for (auto& [name, values] : memory)
    batch.add(name, {DType::I32, Shape{static_cast<std::int64_t>(values.size())}, {}},
              reinterpret_cast<std::byte*>(values.data()));
  samples->fill(0, 3, batch);
  const auto row = [&](const char* name, std::size_t at) {
    const Ids& of = memory[name];
    return Ids(of.begin() + static_cast<std::ptrdiff_t>(8 * at),
               of.begin() + static_cast<std::ptrdiff_t>(8 * at + 8));
  };
  EXPECT_EQ(row("ids", 0), (Ids{256, 'x', 257, 'a', 257, 255, 255, 255}));
  EXPECT_EQ(row("types", 0), (Ids{0, 0, 0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(row("ids", 1), (Ids{256, 'x', 257, 'b', 257, 255, 255, 255}));
  EXPECT_EQ(row("ids", 5), (Ids{256, 'p', 'q', 257, 's', 't', 'u', 257})) << "cut to 8";
  EXPECT_EQ(row("ids", 6), (Ids{256, 'p', 'q', 257, 'y', 257, 255, 255}));
  for (const std::size_t none : {2, 3, 7, 8, 11}) {  // no such choice, no such sample
    EXPECT_EQ(row("ids", none), Ids(8, 255)) << none;
    EXPECT_EQ(row("mask", none), Ids(8, 0)) << none;
  }
  EXPECT_EQ(row("mask", 6), (Ids{1, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(memory["labels"], (Ids{1, 2, kIgnoredLabel}));
}

}  // namespace
}  // namespace tessera
