/// Runs on tagged words and on questions, and perplexities: what is judged after each epoch, on any
/// mesh and after a resume.

#include <cmath>
#include <nlohmann/json.hpp>

#include "train/task_rows.h"

namespace tessera {
namespace {

using Lines = std::vector<std::string>;

class Tagged : public TaskRows {
 protected:
  Lines predictions(const std::string& output, int epoch) const {
    Lines out = split(file(text(output, "/predictions-epoch-", epoch, ".tsv")), '\n');
    EXPECT_GT(out.size(), 1U) << output;
    return out;
  }
};

TEST_F(Tagged, EveryHeldOutWordIsPredictedAfterEachEpoch) {
  for (const char* const family : {"bert", "roberta", "albert", "gpt2", "llama"}) {
    SCOPED_TRACE(family);
    run(on_rows(family, kTokenClassification, "conll", family));
    const nlohmann::json eval = last(family, "eval");
    EXPECT_EQ(eval.at("epoch"), 2);
    EXPECT_EQ(eval.at("step"), 10) << "37 samples twice, 8 in a step";
    const Lines lines = predictions(family, 2);
    EXPECT_EQ(lines[0], "row\tlabel\tprediction");
    ASSERT_EQ(lines.size(), 13U) << "a header, 11 rows, and the end";
    double words = 0, right = 0;
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
      const std::vector<std::string> cells = split(lines[i], '\t');
      ASSERT_EQ(cells.size(), 3U);
      const std::vector<std::string> label = split(cells[1], ' '), told = split(cells[2], ' ');
      ASSERT_EQ(label.size(), told.size());
      EXPECT_EQ(label.size(), 3 + (i - 1) % 5) << "all words of a sentence fit";
      for (std::size_t k = 0; k < label.size(); ++k) right += label[k] == told[k];
      words += static_cast<double>(label.size());
    }
    EXPECT_NEAR(eval.at("accuracy"), right / words, 1e-9);
    for (const char* const score : {"precision", "recall", "f1", "f1_PER", "f1_LOC"})
      EXPECT_TRUE(eval.contains(score)) << score;
  }
}

TEST_F(Tagged, ValidationsEverySoManyStepsAreScoredToo) {
  RunConfig config = on_rows("steps", kTokenClassification, "conll");
  config.eval_every = 5;
  run(config);
  const nlohmann::json eval = last("steps", "eval"), valid = last("steps", "valid");
  EXPECT_EQ(valid.at("step"), eval.at("step"));
  for (const char* const score : {"accuracy", "precision", "recall", "f1", "f1_PER"})
    EXPECT_NEAR(valid.at(score), eval.at(score), 1e-6) << score;
  int scored = 0;
  for (const std::string& line : split(file("steps/metrics.jsonl"), '\n'))
    scored +=
        line.find("\"valid\"") != std::string::npos && line.find("\"f1\"") != std::string::npos;
  EXPECT_EQ(scored, 2) << "steps 5 and 10";
}

TEST_F(Tagged, JsonLinesAreTheSameData) {
  run(on_rows("conll", kTokenClassification, "conll"));
  run(on_rows("jsonl", kTokenClassification, "jsonl"));
  EXPECT_EQ(losses("jsonl"), losses("conll"));
  EXPECT_EQ(predictions("jsonl", 2), predictions("conll", 2));
}

TEST_F(Tagged, QuestionsAreAnsweredOverTheWindowsOfTheirTexts) {
  for (const char* const family : {"bert", "roberta", "albert"}) {
    SCOPED_TRACE(family);
    run(on_rows(family, kQuestionAnswering, "json", family));
    const nlohmann::json eval = last(family, "eval");
    const Lines lines = predictions(family, 2);
    EXPECT_EQ(lines[0], "row\tid\tlabel\tprediction");
    ASSERT_EQ(lines.size(), 13U);
    double exact = 0;
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
      const std::vector<std::string> cells = split(lines[i], '\t');
      ASSERT_EQ(cells.size(), 4U);
      EXPECT_EQ(cells[1], text("q", i - 1));
      EXPECT_FALSE(cells[3].empty()) << "every question has an answer";
      EXPECT_LE(cells[3].size(), 30U) << "a byte is a token";
      exact += cells[2] == cells[3];
    }
    // Normalized answers may be equal where these are not: "Anna" and "Anna ".
    EXPECT_GE(eval.at("exact_match").get<double>() + 1e-6, 100 * exact / 11);
    EXPECT_LE(eval.at("exact_match"), eval.at("f1"));
    EXPECT_TRUE(eval.contains("loss"));
  }
}

TEST_F(Tagged, AResumedRunEndsWithTheSameFiles) {
  for (const auto& [task, data] :
       {std::pair(kTokenClassification, "conll"), {kQuestionAnswering, "json"}}) {
    SCOPED_TRACE(task.name);
    const std::string whole_name = text("whole-", data), cut_name = text("cut-", data);
    RunConfig whole = on_rows(whole_name, task, data), cut = on_rows(cut_name, task, data);
    whole.save_every = cut.save_every = 1;
    whole.model.context = cut.model.context = 0;  // the longest sample's
    run(whole);
    for (const std::int64_t step : {2, 6}) {
      StopAfter stop(step);
      run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
    }
    run(cut);
    EXPECT_EQ(losses(cut_name), losses(whole_name));
    for (const int epoch : {1, 2})
      EXPECT_EQ(predictions(cut_name, epoch), predictions(whole_name, epoch));
    EXPECT_EQ(digest_of(cut_name), digest_of(whole_name));
  }
}

TEST_F(Tagged, MeshesPredictTheSame) {
  struct Case {
    const char* name;
    ParallelConfig parallel;
    std::int64_t zero_stage;
  };
  for (const auto& [task, data] :
       {std::pair(kTokenClassification, "conll"), {kQuestionAnswering, "json"}}) {
    const std::string one = text("one-", data);
    run(on_rows(one, task, data));
    for (const Case& c : {Case{"dp4-zero3", {.devices = 4}, 3},
                          Case{"tp2-sp", {.devices = 4, .tensor = 2, .sequence = true}, 0},
                          Case{"pp2", {.devices = 4, .pipeline = 2}, 1},
                          Case{"cp2", {.devices = 2, .context = 2}, 0}}) {
      SCOPED_TRACE(text(task, " ", c.name));
      const std::string output = text(c.name, "-", data);
      RunConfig mesh = on_rows(output, task, data);
      mesh.parallel = c.parallel;
      mesh.zero_stage = c.zero_stage;
      run_on_ranks(mesh);
      for (const char* const kind : {"eval", "train"}) {
        const double there = last(one, kind).at("loss"), here = last(output, kind).at("loss");
        EXPECT_NEAR(here, there, 1e-5 * there) << kind;
      }
      EXPECT_EQ(predictions(output, 2), predictions(one, 2));
    }
  }
}

TEST_F(Tagged, PerplexityIsTheExponentialOfTheLoss) {
  for (const char* const family : {"gpt2", "bert", "roberta", "albert"}) {
    SCOPED_TRACE(family);
    const bool masked = family != std::string("gpt2");
    RunConfig c = on_rows(family, masked ? kMaskedLm : kCausalLm, "", family);
    c.data = {folder_ + "/text.txt"};
    c.valid_data.clear();
    c.model.context = 8;
    c.epochs = 1;
    run(c);
    const nlohmann::json eval = last(family, "eval"), valid = last(family, "valid");
    EXPECT_EQ(eval.at("loss"), valid.at("loss"));
    EXPECT_EQ(valid.contains("mlm_loss"), masked);
    EXPECT_FALSE(valid.contains("nsp_loss") || valid.contains("sop_loss"));
    const double loss = eval.at("loss");
    EXPECT_NEAR(eval.at("perplexity"), std::exp(loss), 1e-7 * std::exp(loss));
    EXPECT_FALSE(std::filesystem::exists(folder_ + text("/", family, "/predictions-epoch-1.tsv")));
  }
}

TEST_F(Tagged, WhatIsWrongIsTold) {
  const auto told = [&](std::string_view task, const char* data, auto change) {
    RunConfig config = on_rows("none", task, data);
    change(config);
    return refusal(config);
  };
  EXPECT_EQ(told(kQuestionAnswering, "json", [](RunConfig& c) { c.model.doc_stride = -1; }),
            "doc-stride is -1; it must be 0 or more");
  EXPECT_EQ(told(kQuestionAnswering, "json", [](RunConfig& c) { c.model.max_answer_length = 0; }),
            "max-answer-length is 0; it must be 1 or more");
  EXPECT_EQ(told(kTokenClassification, "conll", [](RunConfig& c) { c.model.classes = 2; }),
            "classes is 2, but the data has 3 labels: 'B-LOC', 'B-PER', 'O'; give 0 or at least 3");
  const std::string buckets =
      told(kQuestionAnswering, "json", [](RunConfig& c) { c.bucket_lengths = "24,40"; });
  EXPECT_TRUE(
      buckets.starts_with("bucket-lengths 24,40 does nothing here: all samples are as "
                          "long as the context"))
      << buckets;
  const std::string room =
      told(kQuestionAnswering, "json", [](RunConfig& c) { c.model.context = 16; });
  EXPECT_NE(room.find("has 6 tokens, leaving room for 7 of its text's"), std::string::npos) << room;
  EXPECT_NE(
      told(kTokenClassification, "json", [](RunConfig&) {}).find("has no key tokens or words"),
      std::string::npos);
}

TEST_F(Tagged, TheLongestSampleTellsTheContext) {
  for (const auto& [task, data, context] :
       {std::tuple(kTokenClassification, "conll", 40), {kQuestionAnswering, "json", 72}}) {
    RunConfig c = on_rows("none", task, data);
    c.model.context = 0;
    Problems problems;
    const std::optional<PreparedRun> run = prepare_run(c, problems);
    problems.raise();
    EXPECT_EQ(run->config.model.context, context) << task.name;
    if (task == kTokenClassification) {
      EXPECT_EQ(run->config.model.classes, 3);
    }
  }
}

}  // namespace
}  // namespace tessera
