/// `tessera predict` and `tessera evaluate`: they say what a training of 0 steps with test data
/// says, row by row, on any mesh.

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"

namespace tessera {
namespace {

using Lines = std::vector<std::vector<std::string>>;

Lines table_of(const std::string& bytes) {
  Lines out;
  std::istringstream lines(bytes);
  for (std::string line; std::getline(lines, line);) out.push_back(split(line, '\t'));
  return out;
}

std::string labelled_rows(int count, bool labels) {
  std::string out = labels ? "id\ttext\tlabel\n" : "id\ttext\n";
  for (int i = 0; i < count; ++i)
    out += text(i, "\tword ", i * 7 % 23, i % 2 == 0 ? " is good" : " was bad",
                labels ? text("\t", i % 2 == 0 ? "yes" : "no") : "", "\n");
  return out;
}

constexpr const char* kTinyClassifier =
    " --family bert --layers 1 --heads 2 --width 16 --vocabulary characters --steps 6 "
    "--global-batch-size 8 --lr 1e-2 --held-out 0 ";

Ran ran_in(const Folder& folder, const std::string& line) {
  return run(words(folder.expand(line)));
}

TEST(PredictCommand, LabelsOfTextsAreThoseOfTheTestOfARun) {
  const Folder folder;
  folder.write("train.tsv", labelled_rows(40, true));
  folder.write("bare.tsv", labelled_rows(13, false));
  Ran ran = ran_in(folder, text("train --task sequence_classification --data @/train.tsv "
                                "--test-data @/train.tsv --output @/run",
                                kTinyClassifier));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Lines of_run = table_of(read(folder / "run/predictions-test.tsv"));
  ran = ran_in(folder, "predict @/run --data @/train.tsv --output @/one.tsv");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Lines one = table_of(read(folder / "one.tsv"));
  EXPECT_EQ(one[0], (std::vector<std::string>{"id", "label", "prediction", "p(no)", "p(yes)"}));
  ASSERT_EQ(one.size(), 41u);
  for (std::size_t i = 1; i < one.size(); ++i) {
    EXPECT_EQ(one[i][0], text(i - 1));
    EXPECT_EQ(one[i][2], of_run[i][2]);
    const double no = std::stod(one[i][3]), yes = std::stod(one[i][4]);
    EXPECT_NEAR(no + yes, 1, 1e-5);
    EXPECT_EQ(one[i][2], yes > no ? "yes" : "no");
  }
  EXPECT_EQ(ran_in(folder, "predict @/run --data @/bare.tsv --output @/one.tsv").code, 2)
      << "nothing is replaced";

  // A mesh, another batch, standard output.
  ran = ran_in(folder,
               "predict @/run --data @/train.tsv --devices 4 --tensor-model-parallel-size 2 "
               "--batch-size 6 --output -");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Lines four = table_of(ran.out);
  ASSERT_EQ(four.size(), one.size());
  for (std::size_t i = 1; i < one.size(); ++i) {
    EXPECT_EQ(four[i][2], one[i][2]);
    EXPECT_NEAR(std::stod(four[i][3]), std::stod(one[i][3]), 1e-5);
  }
  ran = ran_in(folder, "predict @/run --data @/bare.tsv");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Lines bare = table_of(ran.out);
  ASSERT_EQ(bare.size(), 14u);
  EXPECT_EQ(bare[0], (std::vector<std::string>{"id", "prediction", "p(no)", "p(yes)"}));
  for (std::size_t i = 1; i < bare.size(); ++i) EXPECT_EQ(bare[i][1], one[i][2]);

  // evaluate says what the run's test said; so does the exported folder.
  const auto of_test = nlohmann::json::parse([&] {
    std::istringstream lines(read(folder / "run/metrics.jsonl"));
    std::string out;
    for (std::string line; std::getline(lines, line);)
      if (line.find("\"kind\":\"test\"") != std::string::npos) out = line;
    return out;
  }());
  ran = ran_in(folder, "evaluate @/run --data @/train.tsv --json --devices 2 --batch-size 16");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["samples"], 40);
  EXPECT_NEAR(json["loss"].get<double>(), of_test["loss"].get<double>(), 1e-5);
  for (const char* score : {"accuracy", "f1", "matthews"})
    EXPECT_NEAR(json[score].get<double>(), of_test[score].get<double>(), 1e-8);
  EXPECT_EQ(ran_in(folder, "evaluate @/run --data @/bare.tsv").code, 3) << "nothing to score";

  // Rows without a label are not among those scored; labels of rows to predict are not looked at.
  folder.write("some.tsv", labelled_rows(6, true) + "6\tword 3 is good\t-1\n");
  ran = ran_in(folder, "evaluate @/run --data @/some.tsv --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["samples"], 6);
  EXPECT_NE(ran.err.find("1 of 7 rows has no label, and is not scored"), std::string::npos)
      << ran.err;
  folder.write("others.tsv", "id\ttext\tlabel\n0\tword 0 is good\tLABEL_1\n");
  ran = ran_in(folder, "predict @/run --data @/others.tsv");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(table_of(ran.out)[1][1], "LABEL_1");
  EXPECT_EQ(table_of(ran.out)[1][2], one[1][2]);
  EXPECT_EQ(ran_in(folder, "evaluate @/run --data @/others.tsv").code, 3);
  ran = ran_in(folder, "predict @/run --data @/bare.tsv --format glue");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--format glue: the model's labels are no, yes; GLUE's are 0 and 1, or "),
            std::string::npos)
      << ran.err;
}

TEST(PredictCommand, GluesTables) {
  const Folder folder;
  std::string pairs = "index\tsentence1\tsentence2\tlabel\n", numbers = pairs;
  for (int i = 0; i < 24; ++i) {
    const std::string row = text(i, "\ta ", i % 5, "\tb ", i % 3, "\t");
    pairs += row + (i % 2 == 0 ? "entailment\n" : "not_entailment\n");
    numbers += text(row, 9 * (i % 3), ".5\n");  // of which many lie beyond 5
  }
  folder.write("rte.tsv", pairs);
  folder.write("stsb.tsv", numbers);
  for (const char* const task : {"sequence_classification", "regression"}) {
    SCOPED_TRACE(task);
    const bool number = task == std::string("regression");
    const std::string data = number ? "@/stsb.tsv" : "@/rte.tsv";
    Ran ran = ran_in(folder, text("train --task ", task, " --data ", data, " --output @/", task,
                                  kTinyClassifier));
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::string predict = text("predict @/", task, " --data ", data);
    const Lines plain = table_of(ran_in(folder, predict).out);
    ran = ran_in(folder, predict + " --format glue");
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Lines glue = table_of(ran.out);
    ASSERT_EQ(glue.size(), 25u);
    EXPECT_EQ(glue[0], (std::vector<std::string>{"index", "prediction"}));
    const auto at = std::ranges::find(plain[0], "prediction") - plain[0].begin();
    for (std::size_t i = 1; i < glue.size(); ++i) {
      EXPECT_EQ(glue[i][0], text(i - 1));
      const std::string found = plain[i][static_cast<std::size_t>(at)];
      if (!number) {
        EXPECT_EQ(glue[i][1], found);
        continue;
      }
      EXPECT_EQ(glue[i][1].size(), 5u) << "three digits behind the point";
      EXPECT_NEAR(std::stod(glue[i][1]), std::clamp(std::stod(found), 0.0, 5.0), 5.1e-4);
    }
  }
  const Ran ran = ran_in(folder,
                         "predict @/regression --data @/stsb.tsv --format glue "
                         "--skip-bad-rows");
  EXPECT_EQ(ran.code, 2) << "a line for each row";
}

TEST(PredictCommand, TagsOfWordsAndTheirProbabilities) {
  const Folder folder;
  folder.write("words.jsonl", [] {
    std::string out;
    for (int i = 0; i < 16; ++i)
      out += text("{\"tokens\": [\"Al\", \"met\", \"n", i, "\"], \"ner_tags\": [\"B\", \"O\", \"",
                  i % 2 == 0 ? "B" : "O", "\"]}\n");
    return out;
  }());
  folder.write("bare.txt", "Al\nmet\n\nn3\n");
  Ran ran = ran_in(folder, text("train --task token_classification --data @/words.jsonl "
                                "--output @/run",
                                kTinyClassifier));
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = ran_in(folder, "predict @/run --data @/bare.txt");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Lines bare = table_of(ran.out);
  ASSERT_EQ(bare.size(), 3u) << ran.out;
  EXPECT_EQ(bare[0], (std::vector<std::string>{"prediction", "probability"}));
  EXPECT_EQ(split(bare[1][0], ' ').size(), 2u);
  EXPECT_EQ(split(bare[1][1], ' ').size(), 2u);
  EXPECT_EQ(split(bare[2][0], ' ').size(), 1u);
}

TEST(PredictCommand, TheProbabilityOfAnAnswerDoesNotDependOnOtherRows) {
  const Folder folder;
  const auto question = [](int id, const std::string& context) {
    return text(R"({"id":")", id, R"(","question":"who","context":")", context,
                R"(","answers":{"text":["Al"],"answer_start":[0]}})", "\n");
  };
  const std::string one = question(1, "Al met Bo"),
                    long_one = question(2, "Al met Bo and many others who were there too");
  std::string all;
  for (int i = 0; i < 8; ++i) all += one + long_one;
  folder.write("train.jsonl", all);
  folder.write("one.jsonl", one);
  folder.write("both.jsonl", one + long_one);
  Ran ran = ran_in(folder, text("train --task question_answering --doc-stride 4 --positions 96 "
                                "--data @/train.jsonl --output @/run",
                                kTinyClassifier));
  ASSERT_EQ(ran.code, 0) << ran.err;
  Lines first;
  for (const char* file : {"one", "both"}) {
    ran = ran_in(folder, text("predict @/run --data @/", file, ".jsonl"));
    ASSERT_EQ(ran.code, 0) << ran.err;
    first.push_back(table_of(ran.out)[1]);
  }
  ASSERT_EQ(first[0].size(), 3u) << ran.out;
  EXPECT_EQ(first[0][1], first[1][1]);
  EXPECT_NEAR(std::stod(first[0][2]), std::stod(first[1][2]), 1e-5 * std::stod(first[0][2]));
}

TEST(EvaluateCommand, OfALanguageModelIsItsPerplexity) {
  const Folder folder;
  folder.write("a.txt", some_text());
  Ran ran =
      ran_in(folder,
             "train --preset gpt2-tiny --layers 1 --width 16 --heads 2 --context 16 --steps 2 "
             "--global-batch-size 4 --data @/a.txt --output @/run");
  ASSERT_EQ(ran.code, 0) << ran.err;
  // Characters are counted in data, which these commands do not read.
  for (const char* line :
       {"plan --init-from @/run", "verify --init-from @/run --devices 2",
        "plan --init-from @/run/checkpoints/step-00000002", "plan --init-from @/run --context 8"})
    EXPECT_EQ(ran_in(folder, line).code, 0) << line;
  ran = ran_in(folder, "evaluate @/run --data @/a.txt --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(json["loss"].get<double>()), 1e-6);
  ran = ran_in(folder, "evaluate @/run --data @/a.txt --secret-file none");
  EXPECT_NE(ran.out.find("perplexity"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("notice: --secret-file none is not read"), std::string::npos) << ran.err;
  ran = ran_in(folder, "predict @/run --data @/a.txt");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("predicts no labels; use tessera evaluate"), std::string::npos) << ran.err;
}

TEST(EvaluateCommand, TextsOfATableHaveAPerplexityToo) {
  const Folder folder;
  folder.write("texts.tsv", labelled_rows(40, true));
  Ran ran = ran_in(folder,
                   "train --preset gpt2-tiny --layers 1 --width 16 --heads 2 --context 16 "
                   "--steps 2 --global-batch-size 4 --data @/texts.tsv --text-column text "
                   "--test-data @/texts.tsv --output @/run");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err.find("no labels"), std::string::npos) << ran.err;
  std::string test;
  std::istringstream lines(read(folder / "run/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (line.find("\"kind\":\"test\"") != std::string::npos) test = line;
  ASSERT_NE(test, "");
  ran = ran_in(folder, "evaluate @/run --data @/texts.tsv --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_GT(json["samples"].get<int>(), 0);
  for (const char* score : {"loss", "perplexity"})
    EXPECT_NEAR(json[score].get<double>(), nlohmann::json::parse(test)[score].get<double>(), 1e-4);
}

TEST(PredictCommand, RefusesWhatDoesNotFit) {
  const Folder folder;
  folder.write("train.tsv", labelled_rows(24, true));
  folder.write("short.tsv", labelled_rows(24, true) + "3\n");
  folder.write("clash.tsv", "prediction\ttext\na\tword is good\n");
  folder.write("other.tsv", "id\treview\n1\tword is good\n");
  ASSERT_EQ(ran_in(folder, text("train --task sequence_classification --data @/train.tsv "
                                "--output @/run",
                                kTinyClassifier))
                .code,
            0);
  struct Row {
    const char* line;
    int code;
    const char* message;
  };
  for (const Row& row :
       {Row{"predict @/run", 2, "data is missing"},
        {"predict --data @/train.tsv", 2, "predict takes one PATH, not 0"},
        {"predict @/none --data @/train.tsv", 4, "none"},
        {"predict @/run --data @/none.tsv", 3, "none.tsv"},
        {"predict @/run --data @/train.tsv --output @/train.tsv --overwrite", 2,
         "is the file that data names"},
        {"predict @/run --data @/train.tsv --output @/run/config.toml --overwrite", 2,
         "which PATH names as input"},
        {"sample @/run --prompt word --output @/run/config.toml --overwrite", 2,
         "which PATH names as input"},
        {"predict @/run --data @/train.tsv --batch-size 0", 2, "--batch-size is 0"},
        {"predict @/run --data @/short.tsv", 3, "line 26 has 1 field"},
        {"predict @/run --data @/clash.tsv", 3, "has a column 'prediction'"},
        {"predict @/run --data @/other.tsv", 3, "--text-column"},
        {"evaluate @/run --data @/train.tsv --output @/x", 2, "--output"},
        {"predict @/run --data @/train.tsv --devices 3 --tensor-model-parallel-size 2", 2,
         "devices 3"}}) {
    SCOPED_TRACE(row.line);
    const Ran ran = ran_in(folder, row.line);
    EXPECT_EQ(ran.code, row.code) << ran.err;
    EXPECT_NE(ran.err.find(row.message), std::string::npos) << ran.err;
  }
  EXPECT_EQ(ran_in(folder, "predict @/run --data @/short.tsv --skip-bad-rows").code, 0);
  EXPECT_EQ(ran_in(folder, "predict @/run --data @/other.tsv --text-column review").code, 0);
}

}  // namespace
}  // namespace tessera
