/// Runs on rows with labels: what is judged after each epoch, on any mesh and after a resume.

#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/data/dataset.h"
#include "tessera/models/family.h"
#include "tessera/sources/row_data.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

using Cells = std::vector<std::string>;

class Classified : public TrainerTest {
 protected:
  Classified() {
    const char* const labels[] = {"no", "yes", "maybe"};
    for (const bool train : {true, false}) {
      for (const int classes : {2, 3}) {
        std::ofstream rows(folder_ + text("/", train ? "train" : "dev", classes, ".tsv"));
        rows << "id\tsentence1\tsentence2\tlabel\n";
        for (int i = 0; i < (train ? 45 : 13); ++i)
          rows << i << "\tthe " << i * 7919 % 100 << " of " << i << "\t" << i * 31 % 17
               << " \"is\"\t" << labels[(i * i + i / 3) % classes] << "\n";
      }
    }
  }

  RunConfig on_labels(const std::string& output, const std::string& family = "bert",
                      int classes = 2) const {
    RunConfig out = config(output);
    const std::int64_t layers = 2;
    out.model = published(FamilyRef(family));
    out.model.task = kSequenceClassification;
    out.model.layers = layers, out.model.heads = 4, out.model.width = 32;
    out.model.context = 32, out.model.dropout = 0.1, out.model.vocabulary = 0;
    if (family == "albert") out.model.embedding_width = 16;
    out.vocabulary = VocabularyKind::Bytes;
    out.data = {folder_ + text("/train", classes, ".tsv")};
    out.valid_data = {folder_ + text("/dev", classes, ".tsv")};
    out.global_batch_size = 8;
    out.epochs = 2;
    return out;
  }

  /// The columns of predictions, without their names.
  std::vector<Cells> predictions(const std::string& output, int epoch) const {
    std::vector<Cells> out;
    for (const std::string& line :
         split(file(text(output, "/predictions-epoch-", epoch, ".tsv")), '\n')) {
      if (!line.empty()) out.push_back(split(line, '\t'));
    }
    EXPECT_FALSE(out.empty()) << output << " " << epoch;
    if (!out.empty()) out.erase(out.begin());
    return out;
  }
};

TEST_F(Classified, EveryHeldOutRowIsPredictedAfterEachEpoch) {
  for (const char* const family : {"bert", "roberta", "albert", "gpt2", "llama", "bart", "t5"}) {
    SCOPED_TRACE(family);
    for (const int classes : {2, 3}) {
      const std::string output = text(family, classes);
      run(on_labels(output, family, classes));
      std::istringstream lines(file(output + "/metrics.jsonl"));
      std::map<int, nlohmann::json> evals;
      for (std::string line; std::getline(lines, line);) {
        const nlohmann::json json = nlohmann::json::parse(line);
        if (json.at("kind") == "eval") evals[json.at("epoch")] = json;
      }
      ASSERT_EQ(evals.size(), 2);
      EXPECT_EQ(evals[1].at("step"), 6) << "45 samples, 8 in a step";
      EXPECT_EQ(evals[2].at("step"), 12);
      for (const int epoch : {1, 2}) {
        const std::vector<Cells> rows = predictions(output, epoch);
        ASSERT_EQ(rows.size(), 13);
        double right = 0, f1 = 0, judged = 0;
        for (const Cells& row : rows) right += row[1] == row[2];
        EXPECT_NEAR(evals[epoch].at("accuracy"), right / 13, 1e-9);
        for (const char* const label : {"no", "yes", "maybe"}) {
          double both = 0, either = 0;
          for (const Cells& row : rows) {
            both += row[1] == label && row[2] == label;
            either += (row[1] == label) + (row[2] == label);
          }
          const bool counts = classes == 2 ? label == std::string("yes") : either > 0;
          if (!counts) continue;
          f1 += either == 0 ? 0 : 2 * both / either;
          ++judged;
        }
        EXPECT_NEAR(evals[epoch].at("f1"), f1 / judged, 1e-9);
      }
    }
  }
}

TEST_F(Classified, AResumedRunEndsWithTheSameFiles) {
  RunConfig whole = on_labels("whole"), cut = on_labels("cut");
  whole.save_every = cut.save_every = 1;
  run(whole);
  for (const std::int64_t step : {2, 6, 7, 11}) {
    StopAfter stop(step);
    run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
  }
  run(cut);
  EXPECT_EQ(losses("cut"), losses("whole"));
  for (const int epoch : {1, 2}) EXPECT_EQ(predictions("cut", epoch), predictions("whole", epoch));
  EXPECT_EQ(digest_of("cut"), digest_of("whole"));
}

TEST_F(Classified, MeshesPredictTheSame) {
  struct Case {
    const char* name;
    ParallelConfig parallel;
    std::int64_t zero_stage;
  };
  for (const char* const family : {"bert", "roberta", "gpt2"}) {
    RunConfig one = on_labels(text(family, "-one"), family);
    run(one);
    for (const Case& c : {Case{"dp4-zero3", {.devices = 4}, 3},
                          Case{"tp2-sp", {.devices = 4, .tensor = 2, .sequence = true}, 0},
                          Case{"pp2", {.devices = 4, .pipeline = 2}, 1},
                          Case{"cp2", {.devices = 2, .context = 2}, 0}}) {
      SCOPED_TRACE(text(family, " ", c.name));
      RunConfig mesh = on_labels(text(family, "-", c.name), family);
      mesh.parallel = c.parallel;
      mesh.zero_stage = c.zero_stage;
      run_on_ranks(mesh);
      for (const char* const kind : {"eval", "train"}) {
        const double there = last(text(family, "-one"), kind).at("loss"),
                     here = last(text(family, "-", c.name), kind).at("loss");
        EXPECT_NEAR(here, there, 1e-5 * there) << kind;
      }
      EXPECT_EQ(predictions(text(family, "-", c.name), 2), predictions(text(family, "-one"), 2));
    }
  }
}

TEST_F(Classified, WeightsOfOtherTasksAndLabelsAreTakenAsFarAsTheyGo) {
  struct Notices : TrainCallback {
    void on_notice(const std::string& notice) override { all += notice + "\n"; }
    std::string all;
  };
  RunConfig words = on_labels("words");
  words.model.task = "pretraining";
  words.data = {folder_ + "/text.txt"};
  words.valid_data.clear();
  words.epochs = 0, words.steps = 2;
  run(words);
  RunConfig two = on_labels("two");
  two.init_from = folder_ + "/words";
  Notices of_two, of_three, again;
  run(two, {.callbacks = {&of_two}});
  EXPECT_NE(of_two.all.find(
                "' lacks classifier.weight, classifier.bias, which are initialized at random"),
            std::string::npos)
      << of_two.all;
  RunConfig three = on_labels("three", "bert", 3);
  three.init_from = folder_ + "/two";
  run(three, {.callbacks = {&of_three}});
  EXPECT_NE(of_three.all.find("' classifies 2 labels ('no', 'yes'), but this run 3 labels "
                              "('maybe', 'no', 'yes')"),
            std::string::npos)
      << of_three.all;
  RunConfig same = on_labels("same");
  same.init_from = folder_ + "/two";
  run(same, {.callbacks = {&again}});
  EXPECT_EQ(again.all.find("classifier is"), std::string::npos) << again.all;
  RunConfig other_task = two;
  other_task.output = words.output;
  EXPECT_NE(refusal(other_task)
                .find("is of another model: task is pretraining there and "
                      "sequence_classification here"),
            std::string::npos)
      << refusal(other_task);
}

TEST_F(Classified, NamesOfAFolderKeepTheirNumbers) {
  const std::string folder = folder_ + "/hub";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json")
      << R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"],
             "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
             "intermediate_size": 64, "vocab_size": 300, "max_position_embeddings": 40,
             "classifier_dropout": 0.25, "id2label": {"0": "yes", "1": "no"}})";
  RunConfig c;
  for (const Field& field : fields()) {
    if (field.group == FieldGroup::Model) c.defaulted.emplace(field.name);
  }
  c.init_from = folder;
  c.init_from_config = true;
  c.vocabulary = VocabularyKind::Bytes;
  c.data = {folder_ + "/train2.tsv"};
  c.valid_data = {folder_ + "/dev2.tsv"};
  c.output = folder_ + "/none";
  for (const int classes : {2, 3}) {
    c.data = {folder_ + text("/train", classes, ".tsv")};
    Problems problems;
    const std::optional<PreparedRun> run = prepare_run(c, problems);
    problems.raise();
    EXPECT_EQ(run->config.model.task, kSequenceClassification);
    EXPECT_EQ(run->config.model.classifier_dropout, 0.25);
    EXPECT_EQ(run->config.model.context, 24);
    EXPECT_EQ(run->config.model.classes, classes);
    EXPECT_EQ(run->data->label_names,
              (classes == 2 ? Cells{"yes", "no"} : Cells{"maybe", "no", "yes"}));
    EXPECT_EQ(run->anew, "") << "the folder has no weights";
  }
}

TEST_F(Classified, WhatIsWrongIsTold) {
  const auto told = [&](auto change) {
    RunConfig config = on_labels("none");
    change(config);
    return refusal(config);
  };
  EXPECT_EQ(
      told([](RunConfig& c) { c.model.task = "chess"; }),
      "task is 'chess', which family bert does not support; it has pretraining, masked_lm, "
      "sequence_classification, regression, multi_label_classification, token_classification, "
      "question_answering, multiple_choice, sentence_embedding");
  const std::string none = told([&](RunConfig& c) { c.data = {folder_ + "/plain.tsv"}; });
  EXPECT_NE(none.find("plain.tsv"), std::string::npos) << none;
  std::ofstream(folder_ + "/odd.csv") << "a,b\n1,2\n";
  EXPECT_NE(told([&](RunConfig& c) {
              c.data = {folder_ + "/odd.csv"};
            }).find("odd.csv' has no column of texts with a usual name (sentence1 and sentence2;"),
            std::string::npos);
  EXPECT_NE(
      told([&](RunConfig& c) {
        c.data = {folder_ + "/odd.csv"};
        c.text_column = "a";
      })
          .find(
              "odd.csv' has no column of labels with a usual name (label, labels, Quality, "
              "is_duplicate, gold_label); its columns are 'a', 'b': select one with label-column"),
      std::string::npos);
  EXPECT_NE(told([&](RunConfig& c) { c.valid_data = {folder_ + "/dev3.tsv"}; })
                .find("dev3.tsv' line 6: column 'label' has the label 'maybe', which is not among "
                      "the labels of the training rows: 'no', 'yes'"),
            std::string::npos)
      << told([&](RunConfig& c) { c.valid_data = {folder_ + "/dev3.tsv"}; });
  EXPECT_EQ(told([&](RunConfig& c) {
              c.model.classes = 2;
              c.data = {folder_ + "/train3.tsv"};
            }),
            "classes is 2, but the data has 3 labels: 'maybe', 'no', 'yes'; give 0 or at least 3");
  EXPECT_EQ(told([](RunConfig& c) { c.model.context = 3; }),
            "context is 3, which leaves no room for text beside the 3 special tokens of a sample; "
            "give a context of 4 or more");
  EXPECT_NE(told([](RunConfig& c) { c.model.classes = -1; }).find("classes is -1"),
            std::string::npos);
}

TEST_F(Classified, ScoresAreInTheColumnOfThatName) {
  std::ofstream(folder_ + "/both.csv") << "text,label,score\na,1,0.5\n";
  for (const auto& [task, column] :
       {std::pair("regression", "score"), std::pair("sequence_classification", "label")}) {
    RunConfig config = on_labels("none");
    config.model.task = task;
    config.data = {folder_ + "/both.csv"};
    config.text_column = config.label_column = "";
    find_columns(config);
    EXPECT_EQ(config.label_column, column) << task;
  }
}

/// In what is trained on nobody lacks a label: -1 of a row to validate on is none all the same.
TEST_F(Classified, RowsToValidateOnMayLackLabels) {
  std::ofstream(folder_ + "/some.tsv") << "id\tsentence1\tsentence2\tlabel\n"
                                       << "0\tthe one\tof one\tyes\n"
                                       << "1\tthe two\tof two\t-1\n"
                                       << "2\tthe three\tof three\tno\n";
  RunConfig config = on_labels("some");
  config.valid_data = {folder_ + "/some.tsv"};
  Problems problems;
  const std::optional<PreparedRun> run = prepare_run(config, problems);
  problems.raise();
  EXPECT_EQ(run->data->label_names, (Cells{"no", "yes"}));
  EXPECT_NE(join(run->notices, "; ").find("some.tsv' has the label -1, which means no label"),
            std::string::npos)
      << join(run->notices, "; ");
}

TEST_F(Classified, TheLongestSampleTellsTheContext) {
  RunConfig c = on_labels("none");
  c.model.context = 0;
  Problems problems;
  const std::optional<PreparedRun> run = prepare_run(c, problems);
  problems.raise();
  // [CLS] the 57 of 43 [SEP] 16 "is" [SEP]: 12 + 7 + 3 bytes, up to a multiple of 8.
  EXPECT_EQ(run->config.model.context, 24);
  EXPECT_EQ(run->config.model.classes, 2);
  EXPECT_EQ(run->config.text_pair_column, "sentence2");
  EXPECT_EQ(run->given.model.context, 0) << "a run of its file finds it again";
}

}  // namespace
}  // namespace tessera
