/// `tessera train` on tables with named columns.

#include "apps/command_test.h"

namespace tessera {
namespace {

/// A table of so many rows: a number, a text, and the text backwards.
std::string some_rows(std::string_view format, int count) {
  std::string out = format == "csv"   ? "id,text,turned\r\n"
                    : format == "tsv" ? "id\ttext\tturned\n"
                                      : "";
  for (int i = 0; i < count; ++i) {
    const std::string word = text("n", i * 7919 % 1000), turned(word.rbegin(), word.rend());
    out += format == "csv"   ? text(i, ",\"", word, ", \"\"", i % 3, "\"\"\",", turned, "\r\n")
           : format == "tsv" ? text(i, "\t", word, ", \"", i % 3, "\"\t", turned, "\n")
                             : text("{\"id\": ", i, ", \"text\": \"", word, ", \\\"", i % 3,
                                    "\\\"\", \"turned\": \"", turned, "\"}\n");
  }
  return out;
}

constexpr const char* kTinyLm =
    " --layers 1 --context 8 --width 16 --heads 2 --steps 3 --global-batch-size 4 --held-out 0.2 ";

/// The lines of the metrics, without what a clock says.
std::string losses_of(const std::string& output) {
  std::istringstream lines(read(output + "/metrics.jsonl"));
  std::string out;
  for (std::string line; std::getline(lines, line);)
    out += line.substr(0, line.find(",\"tokens_per_s\"")) + "\n";
  return out;
}

/// The same rows are the same data, whatever they are written as.
TEST(RowsCommand, TrainOnAColumnOfAnyFormat) {
  const Folder folder;
  std::string first;
  for (const char* const format : {"csv", "tsv", "jsonl"}) {
    SCOPED_TRACE(format);
    folder.write(text("rows.", format), some_rows(format, 200));
    const Ran ran =
        run(words(folder.expand(text("train --preset gpt2-tiny --data @/rows.", format,
                                     " --text-column text --output @/", format, kTinyLm))));
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::string losses = losses_of(folder / format);
    if (first.empty()) first = losses;
    EXPECT_EQ(losses, first);
  }
  // It is the run on a text of the same documents, but for what is held out.
  std::string documents, held_out;
  for (int i = 0; i < 200; ++i)
    (i < 160 ? documents : held_out) += text("n", i * 7919 % 1000, ", \"", i % 3, "\"\n");
  folder.write("train.txt", documents);
  folder.write("valid.txt", held_out);
  ASSERT_EQ(run(words(folder.expand(text("train --preset gpt2-tiny --data @/train.txt --valid-data "
                                         "@/valid.txt --output @/text",
                                         kTinyLm))))
                .code,
            0);
  EXPECT_EQ(losses_of(folder / "text"), first);
}

TEST(RowsCommand, TrainOnPairsOfColumns) {
  const Folder folder;
  folder.write("rows.csv", some_rows("csv", 60));
  std::string pairs;
  for (int i = 0; i < 60; ++i) {
    const std::string word = text("n", i * 7919 % 1000);
    pairs += text(std::string(word.rbegin(), word.rend()), "\t", i, "\n");
  }
  folder.write("pairs.txt", pairs);
  const std::string model =
      " --layers 1 --width 16 --heads 2 --context 6 --source-context 6 --steps 3 --dropout 0 "
      "--held-out 0 --vocabulary bytes ";
  const Ran columns = run(words(
      folder.expand(text("train --preset transformer-tiny --data @/rows.csv --source-column turned "
                         "--target-column id --output @/columns",
                         model))));
  ASSERT_EQ(columns.code, 0) << columns.err;
  const Ran lines = run(words(folder.expand(
      text("train --preset transformer-tiny --data @/pairs.txt --output @/lines", model))));
  ASSERT_EQ(lines.code, 0) << lines.err;
  EXPECT_EQ(losses_of(folder / "columns"), losses_of(folder / "lines"));
}

/// A text may begin with a masked model's own tokens.
TEST(RowsCommand, TrainAMaskedModelAndGoOn) {
  const Folder folder;
  folder.write("rows.tsv", some_rows("tsv", 200));
  const std::string line = folder.expand(text(
      "train --preset bert-tiny --data @/rows.tsv --text-column text --output @/bert --resume auto",
      kTinyLm));
  Ran ran = run(words(line + "--exit-interval 2"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run(words(line));
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran =
      run(words(folder.expand(text("train --preset bert-tiny --data @/rows.tsv --text-column "
                                   "turned --output @/bert --resume auto",
                                   kTinyLm))));
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("text-column is text there and turned here"), std::string::npos)
      << ran.err;
}

TEST(RowsCommand, RefusesWhatDoesNotFit) {
  const Folder folder;
  folder.write("rows.csv", some_rows("csv", 60));
  folder.write("text.txt", some_text());
  folder.write("bad.csv", "id,text\n1,a\n2\n");
  struct Row {
    const char* line;
    int code;
    const char* message;
  };
  for (const Row& row : {
           Row{"gpt2-tiny --data @/rows.csv --text-column none", 3,
               "'@/rows.csv' has no column 'none'; its columns are 'id', 'text', 'turned'"},
           {"gpt2-tiny --data @/bad.csv --text-column text", 3,
            "'@/bad.csv' line 3 has 1 field but there are 2 columns, 'id', 'text'"},
           {"gpt2-tiny --data @/text.txt --text-column text", 2,
            "the name of '@/text.txt' does not show its format; give data-format csv, tsv or "
            "jsonl"},
           {"gpt2-tiny --data @/rows.csv --text-column text --data-format xml", 2,
            "error: data-format is 'xml'; it can be auto, csv, tsv, jsonl"},
           {"gpt2-tiny --data @/rows.csv --target-column text", 2,
            "--target-column text does nothing without text-column"},
           {"gpt2-tiny --data @/rows.csv --text-column text --target-column text", 2,
            "text-column and target-column are both 'text'"},
           {"gpt2-tiny --data @/rows.csv --text-column text --target-column turned", 2,
            "dialogues are written with the chat template of a tokenizer, but vocabulary is "
            "characters"},
           {"transformer-tiny --data @/rows.csv --text-column text", 2,
            "family transformer trains on pairs, but text-column 'text' is one column; give the "
            "targets with target-column"},
           {"gpt2-tiny --data @/rows.csv --text-column text --eod-token 3", 2,
            "--eod-token 3 does nothing with rows of a table"},
           {"gpt2-tiny --data @/rows.csv --text-column text --column-names id text", 3,
            "line 1 has 3 fields but there are 2 columns, 'id', 'text'"},
       }) {
    SCOPED_TRACE(row.line);
    const Ran ran =
        run(words(folder.expand(text("train --output @/run --steps 1 --preset ", row.line))));
    EXPECT_EQ(ran.code, row.code);
    EXPECT_NE(ran.err.find(folder.expand(row.message)), std::string::npos) << ran.err;
  }
  const Ran text_of_csv = run(words(
      folder.expand(text("train --preset gpt2-tiny --data @/rows.csv --output @/text", kTinyLm))));
  EXPECT_EQ(text_of_csv.code, 0);
  EXPECT_NE((text_of_csv.out + text_of_csv.err).find("is read whole, as text"), std::string::npos)
      << text_of_csv.out << text_of_csv.err;
}

/// Ten digits, n and the new line that ends a document.
TEST(RowsCommand, PlansWithTheVocabularyOfAColumn) {
  const Folder folder;
  folder.write("rows.csv", some_rows("csv", 60));
  const auto first_line = [&](const std::string& flags) {
    const Ran ran = run(words(folder.expand("plan --preset gpt2-tiny " + flags)));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out.substr(0, ran.out.find('\n'));
  };
  EXPECT_EQ(first_line("--data @/rows.csv --text-column turned"), first_line("--vocab-size 12"));
  EXPECT_NE(first_line("--data @/rows.csv --text-column text"), first_line("--vocab-size 12"));
}

}  // namespace
}  // namespace tessera
