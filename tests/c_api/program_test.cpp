/// A program's samples and scores, as functions of C: the run is that of the same samples in C++.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "tessera/apps/training.h"
#include "tessera/c_api/c_api.h"
#include "tessera/train/metrics.h"
#include "tessera/user_code/own_run.h"

namespace tessera {
namespace {

using ProgramJson = nlohmann::json;

constexpr std::int64_t kLength = 8;

std::vector<std::int32_t> ids_of(std::int64_t i) {
  std::vector<std::int32_t> out;
  for (std::int64_t k = 0; k < kLength; ++k)
    out.push_back(static_cast<std::int32_t>((i + 1) * (k + 3) % 50));
  return out;
}

/// The samples in C++.
class IdSamples final : public MapDataset {
 public:
  explicit IdSamples(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Features get(std::int64_t i) const override {
    return {{"input_ids", ids_of(i)}, {"labels", ids_of(i)}};
  }

 private:
  std::int64_t size_;
};

/// The samples in C.
struct CProgram {
  std::vector<std::int32_t> ids;
  std::vector<float> extra;
  tessera_feature features[3] = {};
  std::int64_t reads = 0, fails_at = -1, count = 2;
  bool extras = false;
  std::vector<std::int64_t> shape;  // of predictions
  double sum = 0;
  tessera_score score = {"mine", 2.5};
  bool score_fails = false;

  tessera_program program(std::int64_t train, std::int64_t valid) {
    tessera_program out = {};
    out.user = this;
    out.train = train, out.valid = valid, out.shuffled = 1;
    out.read = [](void* user, int held_out, const std::int64_t* numbers, std::int64_t count,
                  tessera_features* to) {
      return static_cast<CProgram*>(user)->read(held_out, numbers, count, to);
    };
    out.score = [](void* user, const tessera_prediction* predictions, std::int64_t count,
                   const tessera_score** scores, std::int64_t* num_scores) {
      return static_cast<CProgram*>(user)->judge(predictions, count, scores, num_scores);
    };
    out.problem = [](void*) -> const char* { return "the function says why"; };
    return out;
  }

  int read(int, const std::int64_t* numbers, std::int64_t n, tessera_features* to) {
    if (++reads == fails_at) return 1;
    ids.clear();
    for (std::int64_t k = 0; k < n; ++k) {
      const std::vector<std::int32_t> row = ids_of(numbers[k]);
      ids.insert(ids.end(), row.begin(), row.end());
    }
    extra.assign(static_cast<std::size_t>(n), 0.5F);
    features[0] = {"input_ids", 0, kLength, ids.data()};
    features[1] = {"labels", 0, kLength, ids.data()};
    features[2] = {"extra", 1, -1, extra.data()};
    *to = {features, extras ? 3 : count, -1};
    return 0;
  }

  int judge(const tessera_prediction* predictions, std::int64_t n, const tessera_score** scores,
            std::int64_t* num_scores) {
    if (score_fails) return 1;
    EXPECT_EQ(n, 1);
    EXPECT_STREQ(predictions[0].name, "logits");
    shape.assign(predictions[0].dims, predictions[0].dims + predictions[0].ndim);
    sum = 0;
    std::int64_t all = 1;
    for (const std::int64_t dim : shape) all *= dim;
    for (std::int64_t i = 0; i < all; ++i) sum += std::abs(predictions[0].numbers[i]);
    *scores = &score;
    *num_scores = 1;
    return 0;
  }
};

struct ProgramCall {
  tessera_run* handle = tessera_run_new();
  std::vector<ProgramJson> events;
  std::vector<std::string> lines;
  std::int64_t save_at = 0;
  ~ProgramCall() { tessera_run_free(handle); }

  int call(const char* what, const ProgramJson& flags, const tessera_program& program) {
    const tessera_listener listener = {
        this,
        [](void* user, const char* json) {
          auto& self = *static_cast<ProgramCall*>(user);
          self.events.push_back(ProgramJson::parse(json));
          if (self.events.back()["step"] == self.save_at && self.events.back()["kind"] == "train")
            tessera_save(self.handle);
          return 0;
        },
        [](void* user, const char* line) {
          static_cast<ProgramCall*>(user)->lines.emplace_back(line);
        }};
    return tessera_call_with(handle, what, flags.dump().c_str(), &program, &listener);
  }
  std::vector<double> losses(const char* kind = "train") const {
    std::vector<double> out;
    for (const ProgramJson& event : events)
      if (event["kind"] == kind) out.push_back(event["loss"]);
    return out;
  }
  std::vector<std::int64_t> saves() const {
    std::vector<std::int64_t> out;
    for (const ProgramJson& event : events)
      if (event["kind"] == "save") out.push_back(event["step"]);
    return out;
  }
  std::string error() const {
    const char* const text = tessera_error(handle);
    return text == nullptr ? "none" : ProgramJson::parse(text)["message"];
  }
  ProgramJson result() const { return ProgramJson::parse(tessera_result(handle)); }
};

ProgramJson program_flags(const Folder& folder, const std::string& output, int devices = 1) {
  return {{"preset", "gpt2-tiny"}, {"layers", 1},        {"vocab_size", 50},
          {"context", kLength},    {"steps", 6},         {"eval_every", 3},
          {"eval_iters", 0},       {"threads", 1},       {"global_batch_size", 4},
          {"lr_warmup_steps", 0},  {"devices", devices}, {"output", folder / output}};
}

/// Losses of the same samples by functions of C++, which are not read ahead.
struct CppLosses : TrainCallback {
  std::vector<double> train, valid;
  void on_step(const StepRecord& record) override { train.push_back(record.loss); }
  void on_valid(std::int64_t, double loss, const NamedMeans&) override { valid.push_back(loss); }
};
CppLosses losses_in_cpp(const Folder& folder) {
  AskedTraining asked = read_training_flags(
      words(folder.expand("--preset gpt2-tiny --layers 1 --vocab-size 50 --context 8 --steps 6 "
                          "--eval-every 3 --eval-iters 0 --threads 1 --global-batch-size 4 "
                          "--lr-warmup-steps 0 --output @/cpp")));
  OwnFunctions functions;
  functions.datasets = []() -> Datasets {
    return {std::make_shared<IdSamples>(10), std::make_shared<IdSamples>(6)};
  };
  functions.provide = [] { return Provided(); };
  functions.forward = [](const Batch& batch, const Model& model) { return model(batch); };
  functions.shuffled = true;
  const OwnRun run(asked.config, functions);
  asked.config = run.config();
  std::ostringstream said;
  Console console{said, said};
  CppLosses out;
  std::atomic<bool> stop = false;
  train_here(asked, console, {&out}, stop);
  return out;
}

TEST(CProgram, TheRunOfTheSameSamplesInCpp) {
  const Folder folder;
  const CppLosses expected = losses_in_cpp(folder);
  ASSERT_EQ(expected.train.size(), 6u);
  ASSERT_EQ(expected.valid.size(), 2u);
  const auto nine_digits = [](double value) { return std::stod(json_number(value)); };
  for (const int devices : {1, 2}) {
    CProgram mine;
    mine.extras = devices == 2;
    ProgramCall run;
    ASSERT_EQ(
        run.call("train", program_flags(folder, "c" + text(devices), devices), mine.program(10, 6)),
        0)
        << run.error();
    const std::vector<double> train = run.losses(), valid = run.losses("valid");
    ASSERT_EQ(train.size(), 6u);
    ASSERT_EQ(valid.size(), 2u);
    for (std::size_t i = 0; i < train.size(); ++i)
      EXPECT_NEAR(train[i] / nine_digits(expected.train[i]), 1, devices == 1 ? 0 : 1e-5);
    for (std::size_t i = 0; i < valid.size(); ++i)
      EXPECT_NEAR(valid[i] / expected.valid[i], 1, 1e-6);
    EXPECT_EQ(mine.shape, (std::vector<std::int64_t>{6, kLength, 50}));
    for (const ProgramJson& event : run.events) {
      if (event["kind"] == "valid") {
        EXPECT_EQ(event["mine"], 2.5);
      }
    }
    const bool told = std::ranges::any_of(run.lines, [](const std::string& line) {
      return line.find("the model does not read extra of the dataset") != std::string::npos;
    });
    EXPECT_EQ(told, mine.extras);
  }
}

TEST(CProgram, AnEvaluationIsTheValidationOfItsWeights) {
  const Folder folder;
  CProgram mine;
  ProgramCall run;
  ASSERT_EQ(run.call("train", program_flags(folder, "run"), mine.program(10, 6)), 0) << run.error();
  const double loss = run.losses("valid").back(), sum = mine.sum;
  for (const int devices : {1, 2}) {
    ProgramJson flags = program_flags(folder, "none", devices);
    flags.erase("output");
    flags["init_from"] = folder / "run";
    ProgramCall evaluation;
    ASSERT_EQ(evaluation.call("evaluate", flags, mine.program(-1, 6)), 0) << evaluation.error();
    EXPECT_NEAR(evaluation.result()["loss"].get<double>() / loss, 1, 1e-6);
    EXPECT_EQ(evaluation.result()["samples"], 6);
    EXPECT_EQ(evaluation.result()["scores"]["mine"], 2.5);
    EXPECT_NEAR(mine.sum / sum, 1, 1e-5);
    mine.count = 1;  // without labels
    ProgramCall prediction;
    ASSERT_EQ(prediction.call("evaluate", flags, mine.program(-1, 6)), 0) << prediction.error();
    EXPECT_NEAR(mine.sum / sum, 1, 1e-5);
    mine.count = 2;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(CProgram, WhatWasTrainedIsSavedBeforeAFailure) {
  const Folder folder;
  for (const int devices : {1, 2}) {
    const std::string n = text(devices);
    CProgram reading;
    ProgramCall first;
    ASSERT_EQ(
        first.call("train", program_flags(folder, "whole" + n, devices), reading.program(10, 6)),
        0);
    CProgram mine;
    mine.fails_at = reading.reads - 2;  // before the last validation
    ProgramCall failing;
    EXPECT_EQ(failing.call("train", program_flags(folder, "run" + n, devices), mine.program(10, 6)),
              3);
    EXPECT_NE(failing.error().find("the function says why"), std::string::npos) << failing.error();
    ASSERT_EQ(failing.saves().size(), 1u);
    EXPECT_EQ(failing.saves()[0], std::ssize(failing.losses()));
    CProgram well;
    ProgramCall going_on;
    ProgramJson flags = program_flags(folder, "run" + n, devices);
    flags["resume"] = "auto";
    ASSERT_EQ(going_on.call("train", flags, well.program(10, 6)), 0) << going_on.error();
    EXPECT_EQ(going_on.result()["summary"]["train_loss"], first.result()["summary"]["train_loss"]);

    CProgram judged;
    judged.score_fails = true;
    ProgramCall unscored;
    EXPECT_EQ(unscored.call("train", program_flags(folder, "unscored" + n, devices),
                            judged.program(10, 6)),
              3);
    EXPECT_EQ(unscored.saves(), (std::vector<std::int64_t>{3}));
  }
}

TEST(CProgram, ASaveIsAskedFor) {
  const Folder folder;
  CProgram mine;
  ProgramCall run;
  run.save_at = 2;
  ASSERT_EQ(run.call("train", program_flags(folder, "run"), mine.program(10, -1)), 0)
      << run.error();
  EXPECT_EQ(run.saves(), (std::vector<std::int64_t>{2, 6}));
}

TEST(CProgram, WhatIsMissingIsSaid) {
  const Folder folder;
  CProgram mine;
  const auto error_of = [&](const char* what, const tessera_program& program) {
    ProgramCall call;
    EXPECT_EQ(call.call(what, program_flags(folder, "run"), program), 2);
    return call.error();
  };
  EXPECT_NE(error_of("plan", mine.program(10, 6)).find("there are train, rapidformer, evaluate"),
            std::string::npos);
  EXPECT_NE(error_of("evaluate", mine.program(10, -1)).find("no dataset to evaluate"),
            std::string::npos);
  tessera_program unread = mine.program(10, 6);
  unread.read = nullptr;
  EXPECT_NE(error_of("train", unread).find("give read"), std::string::npos);
}

}  // namespace
}  // namespace tessera
