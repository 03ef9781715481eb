/// The test at the end of a run: which weights, scores and files, on any mesh and after a resume.

#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/files/safetensors.h"
#include "train/task_rows.h"

namespace tessera {
namespace {

using JsonLine = nlohmann::json;

/// What a run tells of its test.
struct ToldTest : TrainCallback {
  void on_test(const TestRecord& record) override { records.push_back(record); }
  void on_notice(const std::string& notice) override { notices += notice + "\n"; }
  std::vector<TestRecord> records;
  std::string notices;
};

class TestPart : public TaskRows {
 protected:
  RunConfig tested(const std::string& output, std::string_view task = kSequenceClassification,
                   const char* data = "tsv", const char* family = "bert") const {
    RunConfig out = on_rows(output, task, data, family);
    out.test_data = {folder_ + text("/test.", data)};
    return out;
  }
  /// The best weights are not the last ones: it learns far too fast.
  static void get_worse(RunConfig& config) {
    config.epochs = 4;
    config.keep_best = true;
    config.optimizer.schedule.lr = 0.05;
    config.optimizer.schedule.warmup_steps = 0;
  }

  std::vector<JsonLine> all(const std::string& output, const std::string& kind) const {
    std::vector<JsonLine> out;
    std::istringstream lines(file(output + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      JsonLine json = JsonLine::parse(line);
      if (json.at("kind") == kind) out.push_back(std::move(json));
    }
    return out;
  }
  /// The line of the test, without what tells it from that of an epoch.
  JsonLine scores(JsonLine line) const {
    for (const char* const key : {"kind", "epoch", "weights"}) line.erase(key);
    return line;
  }
  std::string predicted(const std::string& output) const {
    return file(output + "/predictions-test.tsv");
  }
};

/// The test data is the held-out data, so its line is that of the epoch whose weights it takes.
TEST_F(TestPart, TakesTheBestWeightsWhereSomeAreKept) {
  RunConfig c = tested("best");
  get_worse(c);
  ToldTest told;
  run(c, {.callbacks = {&told}});
  const std::vector<JsonLine> evals = all("best", "eval"), tests = all("best", "test");
  ASSERT_EQ(evals.size(), 4U);
  ASSERT_EQ(tests.size(), 1U);
  const auto best = std::ranges::min_element(
      evals, {}, [](const JsonLine& line) { return line.at("loss").get<double>(); });
  ASSERT_NE(best, evals.end() - 1) << "the last weights are the best: nothing is shown";
  EXPECT_EQ(tests[0].at("weights"), "best");
  EXPECT_EQ(scores(tests[0]), scores(*best));
  const std::int64_t epoch = best->at("epoch");
  EXPECT_EQ(predicted("best"), file(text("best/predictions-epoch-", epoch, ".tsv")));
  ASSERT_EQ(told.records.size(), 1U);
  EXPECT_TRUE(told.records[0].best);
  EXPECT_EQ(told.records[0].measured.predictions, folder_ + "/best/predictions-test.tsv");
}

TEST_F(TestPart, TakesTheLastWeightsElse) {
  run(tested("last"));
  const std::vector<JsonLine> tests = all("last", "test");
  ASSERT_EQ(tests.size(), 1U);
  EXPECT_EQ(tests[0].at("weights"), "last");
  EXPECT_EQ(scores(tests[0]), scores(last("last", "eval")));
  EXPECT_EQ(predicted("last"), file("last/predictions-epoch-2.tsv"));
  // It changes nothing else of the run.
  RunConfig without = tested("without");
  without.test_data.clear();
  run(without);
  EXPECT_EQ(digest_of("last"), digest_of("without"));
  const std::string lines = losses("last");
  EXPECT_EQ(lines.substr(0, lines.find("{\"kind\":\"test\"")), losses("without"));
}

/// Of each task: with labels the scores of the epoch, without them the same predictions alone.
TEST_F(TestPart, IsPredictedWithoutLabelsToo) {
  struct Case {
    std::string_view task;
    const char *data, *header;
  };
  for (const Case& c : {Case{kSequenceClassification, "tsv", "row\tprediction"},
                        Case{kTokenClassification, "conll", "row\tprediction"},
                        Case{kTokenClassification, "jsonl", "row\tprediction"},
                        Case{kQuestionAnswering, "json", "row\tid\tprediction"}}) {
    SCOPED_TRACE(text(c.task, " ", c.data));
    const std::string with = text("with-", c.task, c.data), bare = text("bare-", c.task, c.data);
    run(tested(with, c.task, c.data));
    EXPECT_EQ(scores(last(with, "test")), scores(last(with, "eval")));
    EXPECT_EQ(predicted(with), file(with + "/predictions-epoch-2.tsv"));
    RunConfig config = tested(bare, c.task, c.data);
    config.test_data = {folder_ + text("/bare.", c.data)};
    ToldTest told;
    run(config, {.callbacks = {&told}});
    EXPECT_TRUE(all(bare, "test").empty());
    EXPECT_NE(told.notices.find("has no labels: they are predicted at the end"), std::string::npos);
    ASSERT_EQ(told.records.size(), 1U);
    EXPECT_FALSE(told.records[0].labelled);
    const std::vector<std::string> there = split(predicted(with), '\n'),
                                   here = split(predicted(bare), '\n');
    ASSERT_EQ(there.size(), here.size());
    EXPECT_EQ(here[0], c.header);
    for (std::size_t i = 1; i + 1 < here.size(); ++i)
      EXPECT_EQ(split(here[i], '\t').back(), split(there[i], '\t').back());
  }
}

TEST_F(TestPart, OfPicturesToo) {
  const auto write = [&](const std::string& name, bool labelled) {
    constexpr std::int64_t kPictures = 12, kSide = 8;
    std::vector<float> pixels;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < kPictures; ++i) {
      labels.push_back(i % 3);
      for (std::int64_t k = 0; k < kSide * kSide; ++k)
        pixels.push_back(static_cast<float>(i % 3 - 1 + k % 5) / 3);
    }
    std::vector<TensorSource> tensors = {
        TensorSource::of("pixel_values", {DType::F32, {kPictures, 1, kSide, kSide}, {}},
                         std::as_bytes(std::span(pixels)))};
    if (labelled)
      tensors.push_back(TensorSource::of("labels", {DType::I64, {kPictures}, {}},
                                         std::as_bytes(std::span(labels))));
    write_safetensors(folder_ + "/" + name + ".safetensors", tensors, {});
  };
  write("train", true), write("dev", true), write("test", true), write("bare", false);
  RunConfig c = tested("known", kImageClassification, "safetensors", "vit");
  c.model.image_size = 8, c.model.patch_size = 4, c.model.image_channels = 1;
  c.model.classes = 3, c.model.context = 0;
  run(c);
  EXPECT_EQ(scores(last("known", "test")), scores(last("known", "eval")));
  EXPECT_EQ(predicted("known"), file("known/predictions-epoch-2.tsv"));
  c.output = folder_ + "/unknown";
  c.test_data = {folder_ + "/bare.safetensors"};
  run(c);
  EXPECT_TRUE(all("unknown", "test").empty());
  EXPECT_TRUE(starts_with(predicted("unknown"), "row\tprediction\n")) << predicted("unknown");
}

/// The library datasets has -1 for labels that are kept secret.
TEST_F(TestPart, LabelsThatAreAllMinusOneAreNone) {
  std::ofstream(folder_ + "/secret.tsv") << "sentence\tlabel\nthe 5\t-1\nthe 6\t-1\n";
  RunConfig c = tested("secret");
  c.test_data = {folder_ + "/secret.tsv"};
  run(c);
  EXPECT_TRUE(all("secret", "test").empty());
  EXPECT_TRUE(starts_with(predicted("secret"), "row\tprediction\n0\t")) << predicted("secret");
}

TEST_F(TestPart, OfALanguageModelIsItsPerplexity) {
  for (const char* const family : {"gpt2", "bert"}) {
    SCOPED_TRACE(family);
    const bool masked = family != std::string("gpt2");
    RunConfig c = tested(family, masked ? kMaskedLm : kCausalLm, "txt", family);
    c.model.context = 16;
    run(c);
    EXPECT_EQ(scores(last(family, "test")), scores(last(family, "eval")));
    EXPECT_GT(last(family, "test").at("perplexity"), 1.0);
    EXPECT_EQ(predicted(family), "");
  }
}

TEST_F(TestPart, IsTheSameOnMeshes) {
  struct Case {
    const char* name;
    ParallelConfig parallel;
    std::int64_t zero_stage;
  };
  for (const auto& [task, data] : {std::pair(kSequenceClassification, "tsv"),
                                   {kTokenClassification, "conll"},
                                   {kQuestionAnswering, "json"}}) {
    const std::string one = text("one-", data);
    RunConfig alone = tested(one, task, data);
    get_worse(alone);
    alone.optimizer.schedule.lr = 0.02;
    run(alone);
    for (const Case& c : {Case{"dp4-zero3", {.devices = 4}, 3},
                          Case{"tp2-sp", {.devices = 4, .tensor = 2, .sequence = true}, 0},
                          Case{"pp2", {.devices = 4, .pipeline = 2}, 1}}) {
      SCOPED_TRACE(text(task, " ", c.name));
      const std::string output = text(c.name, "-", data);
      RunConfig mesh = tested(output, task, data);
      get_worse(mesh);
      mesh.optimizer.schedule.lr = 0.02;
      mesh.parallel = c.parallel;
      mesh.zero_stage = c.zero_stage;
      run_on_ranks(mesh);
      const JsonLine there = last(one, "test"), here = last(output, "test");
      EXPECT_EQ(here.at("step"), there.at("step"));
      EXPECT_EQ(here.at("weights"), "best");
      for (const auto& [key, value] : there.items()) {
        if (!value.is_number_float()) continue;
        EXPECT_NEAR(here.at(key), value, 1e-4 * value.get<double>()) << key;
      }
      EXPECT_EQ(predicted(output), predicted(one));
    }
  }
}

/// Also where all steps were done before.
TEST_F(TestPart, AResumedRunEndsWithTheSameFiles) {
  RunConfig whole = tested("whole"), cut = tested("cut");
  get_worse(whole), get_worse(cut);
  whole.save_every = cut.save_every = 1;
  run(whole);
  ASSERT_EQ(last("whole", "train").at("step"), 19) << "37 samples four times, 8 in a step";
  for (const std::int64_t step : {2, 6}) {
    StopAfter stop(step);
    EXPECT_EQ(run(cut, {.callbacks = {&stop}, .stop = &stop.stop}).ending, Ending::Stopped);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/cut/predictions-test.tsv"));
  }
  for (int time = 0; time < 2; ++time) {
    run(cut);
    EXPECT_EQ(losses("cut"), losses("whole"));
    EXPECT_EQ(predicted("cut"), predicted("whole"));
    EXPECT_EQ(digest_of("cut"), digest_of("whole"));
  }
}

TEST_F(TestPart, ARequestToStopLeavesItUndone) {
  struct StopAtSave : TrainCallback {
    void on_save(std::int64_t step, const std::string&) override { stop = step == 10; }
    std::atomic<bool> stop = false;
  };
  StopAtSave stop;
  const RunConfig c = tested("cut");
  EXPECT_EQ(run(c, {.callbacks = {&stop}, .stop = &stop.stop}).ending, Ending::Stopped);
  EXPECT_TRUE(all("cut", "test").empty());
  EXPECT_EQ(run(c).ending, Ending::Finished);
  EXPECT_EQ(scores(last("cut", "test")), scores(last("cut", "eval")));
}

/// A trained model on texts of which nothing is known but themselves: no step is trained.
TEST_F(TestPart, PredictsWithoutTraining) {
  run(tested("first"));
  RunConfig c = tested("second");
  c.init_from = folder_ + "/first";
  c.test_data = {folder_ + "/bare.tsv"};
  c.epochs = c.steps = 0;
  run(c);
  const std::vector<std::string> there = split(predicted("first"), '\n'),
                                 here = split(predicted("second"), '\n');
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 1; i + 1 < here.size(); ++i)
    EXPECT_EQ(split(here[i], '\t').back(), split(there[i], '\t').back());
}

TEST_F(TestPart, WhatIsWrongIsToldAtTheStart) {
  const auto told = [&](const char* name, const char* content,
                        std::string_view task = kSequenceClassification) {
    std::ofstream(folder_ + "/" + name) << content;
    const std::string ending = std::filesystem::path(name).extension().string();
    RunConfig c = tested("none", task, ending.c_str() + 1);
    c.test_data = {folder_ + "/" + name};
    return refusal(c);
  };
  struct Case {
    const char *name, *content, *problem;
    std::string_view task = kSequenceClassification;
  };
  for (const Case& c :
       {Case{"other.tsv", "sentence\tlabel\na\tno\nb\tmaybe\n",
             "other.tsv' line 3: column 'label' has the label 'maybe', which is not among the "
             "model's labels: 'no', 'yes'"},
        Case{"columns.tsv", "words\tlabel\na\tno\n", "columns.tsv' has no column 'sentence'"},
        Case{"short.tsv", "sentence\tlabel\na\n", "short.tsv' line 2"},
        Case{"tag.conll", "Anna B-PER\nsees B-DOG\n", "has the tag 'B-DOG', which is not among",
             kTokenClassification},
        Case{"mixed.conll", "Anna\nsees O\n", "mixed.conll' line 2 has 2 columns, but the first",
             kTokenClassification},
        Case{"mixed.jsonl",
             R"({"tokens": ["a"]})"
             "\n"
             R"({"tokens": ["a"], "tags": ["O"]})",
             "mixed.jsonl' line 2 has tags, but the first object", kTokenClassification}}) {
    const std::string problem = told(c.name, c.content, c.task);
    EXPECT_NE(problem.find(c.problem), std::string::npos) << problem;
    EXPECT_NE(problem.find("in the data to test on at the end of the run (test-data)"),
              std::string::npos)
        << problem;
  }
  RunConfig two = tested("none");
  two.test_data.push_back(folder_ + "/bare.tsv");
  EXPECT_NE(refusal(two).find("bare.tsv' has no column 'label', and '"), std::string::npos)
      << refusal(two);
  EXPECT_NE(told("nowhere/none.tsv", "").find("nowhere/none.tsv"), std::string::npos);
}

}  // namespace
}  // namespace tessera
