/// Multiple choice by the command: from columns of tables to folders of transformers.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/word_command.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ChoiceCommand : public WordCommand {
 protected:
  ChoiceCommand() : WordCommand("multiple_choice") {
    std::string swag = "sent1,sent2,ending0,ending1,ending2,ending3,label\n", arc, plain;
    for (int i = 0; i < 24; ++i) {
      swag += text("what is ", i, ",it is,", i % 4 == 0 ? "" : "and ", i, ",", i + 1, ",and it,",
                   i + 3, ",", i % 4, "\n");
      json row = {{"question", text("what is ", i)}, {"answerKey", i % 3 == 0 ? "A" : "B"}};
      row["choices"] = {{"text", {text("it is ", i), text("it is ", i + 7)}},
                        {"label", {"A", "B"}}};
      if (i % 2 == 0) {
        row["choices"]["text"].push_back("and");
        row["choices"]["label"].push_back("C");
      }
      arc += row.dump() + "\n";
      row.erase("answerKey");
      plain += row.dump() + "\n";
    }
    folder_.write("swag.csv", swag);
    folder_.write("arc.jsonl", arc);
    folder_.write("plain.jsonl", plain);
  }
};

/// Rows have two or three choices.
TEST_F(ChoiceCommand, LossesAreTheSameOnEveryMesh) {
  std::vector<std::string> runs;
  for (const char* mesh :
       {"", "--micro-batch-size 1", "--devices 2 --micro-batch-size 2",
        "--devices 4 --tensor-model-parallel-size 2 --zero-stage 3 --micro-batch-size 1",
        "--devices 2 --context-parallel-size 2 --context 16",
        "--devices 4 --pipeline-model-parallel-size 2 --micro-batch-size 1"})
    runs.push_back(text("--data @/arc.jsonl ", mesh));
  expect_equal_losses(runs);
}

TEST_F(ChoiceCommand, AFolderOfTransformersIsWrittenReadAndAsked) {
  ASSERT_EQ(train("--data @/swag.csv --valid-data @/swag.csv --epochs 1").code, 0);
  EXPECT_TRUE(
      read(folder_ / "run/predictions-epoch-1.tsv").starts_with("row\tlabel\tprediction\n"));
  const Ran written = ran("export @/run --output @/out");
  ASSERT_EQ(written.code, 0) << written.err;
  const json config = json::parse(read(folder_ / "out/config.json"));
  EXPECT_EQ(config["architectures"], json({"BertForMultipleChoice"}));
  const Ran ours = ran("predict @/run --data @/swag.csv --output @/ours.tsv"),
            theirs = ran("predict @/out --data @/swag.csv --output @/theirs.tsv");
  ASSERT_EQ(ours.code, 0) << ours.err;
  ASSERT_EQ(theirs.code, 0) << theirs.err;
  EXPECT_EQ(read(folder_ / "ours.tsv"), read(folder_ / "theirs.tsv"));
  EXPECT_TRUE(read(folder_ / "ours.tsv").starts_with("label\tprediction\tp(0)\tp(1)\tp(2)\tp(3)\n"))
      << read(folder_ / "ours.tsv").substr(0, 80);
  // The folder's task is this one; rows with other numbers of choices, and without labels, too.
  ASSERT_EQ(train("--data @/arc.jsonl", "--init-from @/out").code, 0);
  const Ran scored =
      ran("evaluate @/run --data @/swag.csv --text-column sent1,sent2 "
          "--text-pair-column ending0,ending1,ending2,ending3 --label-column label "
          "--json");
  ASSERT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("accuracy"), std::string::npos) << scored.out;
  EXPECT_EQ(scored.out.find("f1"), std::string::npos) << scored.out;
  const Ran unlabelled = ran("predict @/run --data @/plain.jsonl --output @/plain.tsv");
  ASSERT_EQ(unlabelled.code, 0) << unlabelled.err;
  EXPECT_NE(ran("evaluate @/run --data @/plain.jsonl").code, 0);
  // A classifier of texts begins anew.
  const Ran other = train("--data @/labels.tsv --valid-data @/labels.tsv",
                          "--task sequence_classification --init-from @/out");
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_NE((other.out + other.err).find("the classifier is initialized at random"),
            std::string::npos);
}

/// PEFT has no name for the task: the class of the model tells it.
TEST_F(ChoiceCommand, AnAdapterTellsItsTask) {
  const Ran base = train("--data @/labels.tsv --valid-data @/labels.tsv --context 32",
                         "--tokenizer @/words --family bert --layers 1 --heads 2 --width 16 "
                         "--task sequence_classification");
  ASSERT_EQ(base.code, 0) << base.err;
  ASSERT_EQ(ran("export @/run --output @/base").code, 0);
  const Ran trained =
      train("--data @/arc.jsonl --lora-rank 2", "--task multiple_choice --init-from @/base");
  ASSERT_EQ(trained.code, 0) << trained.err;
  ASSERT_EQ(ran("export @/run --output @/adapter").code, 0);
  const json config = json::parse(read(folder_ / "adapter/adapter_config.json"));
  EXPECT_TRUE(config["task_type"].is_null());
  EXPECT_EQ(config["auto_mapping"]["base_model_class"], "BertForMultipleChoice");
  EXPECT_EQ(config["auto_mapping"]["parent_library"], "transformers.models.bert.modeling_bert");
  for (const char* of : {"run", "adapter"}) {
    const Ran asked = ran(text("predict @/", of, " --data @/arc.jsonl --output @/", of, ".tsv"));
    ASSERT_EQ(asked.code, 0) << asked.err;
  }
  EXPECT_EQ(read(folder_ / "adapter.tsv"), read(folder_ / "run.tsv"));
}

struct RefusedChoices {
  const char *flags, *says;
};

TEST_F(ChoiceCommand, WhatDoesNotFitIsRefused) {
  folder_.write("odd.tsv", "left\tright\na\tb\n");
  folder_.write("late.csv", "question,choice1,choice2,label\nwhat is 1,it,is,1\nwhat,it,is,2\n");
  folder_.write("python.csv", "question,choices,label\nwhat,\"['it', 'is']\",1\n");
  const RefusedChoices rows[] = {
      {"--data @/odd.tsv", "no column of texts with a usual name (sent1, question, context)"},
      {"--data @/odd.tsv --text-column left", "no column of choices with a usual name"},
      {"--data @/odd.tsv --text-column left --text-pair-column right",
       "no column of labels with a usual name"},
      {"--data @/late.csv",
       "late.csv' line 3: column 'label' has the label '2', and the row has 2 choices; give a "
       "number from 0 to 1"},
      {"--data @/python.csv", "line 2: column 'choices' has '['it', 'is']' where choices belong"},
      {"--data @/swag.csv --text-pair-column ending0,ending9,ending1", "no column 'ending9'"},
      {"--data @/swag.csv --text-pair-column ending0,ending0", "'ending0' is named twice"},
      {"--data @/arc.jsonl --texts 2", "has 3 choices, and texts is 2; give --texts 3"},
      {"--data @/arc.jsonl --texts 1", "texts is 1; choices can be from 2"},
      {"--data @/arc.jsonl --label-separator ;", "does nothing with task multiple_choice"},
      {"--data @/arc.jsonl --negative-column n", "does nothing with task multiple_choice"},
      {"--data @/arc.jsonl --context 3", "context is 3, which leaves no room"},
  };
  for (const RefusedChoices& row : rows) {
    const Ran refused = train(row.flags);
    EXPECT_NE(refused.code, 0) << row.flags;
    EXPECT_NE(refused.err.find(row.says), std::string::npos) << row.flags << "\n" << refused.err;
  }
}

}  // namespace
}  // namespace tessera
