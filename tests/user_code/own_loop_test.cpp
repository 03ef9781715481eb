/// Loops of a program's own, and the data of templates, as the flags and functions make them.

#include "tessera/user_code/own_loop.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/rapidformer/request.h"
#include "tessera/token_files/indexed_dataset_writer.h"
#include "tessera/user_code/named_function.h"

namespace tessera {

namespace {

/// Sample i is a row of two numbers, of which the first is i, and what to make of it, 2 i.
class Doubled final : public MapDataset {
 public:
  explicit Doubled(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Features get(std::int64_t i) const override {
    const auto number = static_cast<float>(i);
    return {{"row", std::vector<float>{number, 1}}, {"target", 2 * number}};
  }

 private:
  std::int64_t size_;
};

using Forward = std::function<ModelOutput(const Batch& batch, const Model& model)>;

struct Loop {
  Loop(const std::string& flags, std::int64_t held_out, const Forward& forward)
      : asked(read_rapidformer_flags(split(flags, ' '), FlagsOf::Program)) {
    OwnFunctions functions;
    functions.datasets = [=]() -> Datasets {
      return {std::make_shared<Doubled>(16), std::make_shared<Doubled>(held_out)};
    };
    functions.provide = []() -> Provided { return {ModelChoice::own_layers()}; };
    functions.forward = forward;
    loop.emplace(asked, console, std::move(functions));
  }
  EvalPrediction gather() { return loop->gather(); }

  std::ostringstream said;
  Console console{said, said};
  AskedTraining asked;
  std::optional<OwnLoop> loop;
};

Value line_of(const Batch& batch) {
  const Value row = batch["row"];
  return reshape(linear(row, "line", 1), {row.shape()[0]});
}

}  // namespace

TEST(OwnLoop, GathersAllThatIsHeldOut) {
  const Forward forward = [](const Batch& batch, const Model&) -> ModelOutput {
    const Value line = line_of(batch);
    return {masked_mean(line * line, batch.is_sample()), {{"line", line}}};
  };
  const std::string flags = "--epochs 1 --lr 0.1 --threads 1 --global-batch-size 1";
  EXPECT_EQ(Loop("--train-iters 5 --lr 0.1 --threads 1 --global-batch-size 1", 130, forward)
                .gather()
                .samples,
            130);
  EXPECT_EQ(Loop(flags, 130, forward).gather().samples, 130);
  EXPECT_EQ(Loop(flags + " --eval-iters 7", 130, forward).gather().samples, 7);
}

TEST(OwnLoop, PredictionsAreOfEachSample) {
  const auto refusal = [](const Forward& forward) -> std::string {
    try {
      Loop("--epochs 1 --lr 0.1 --threads 1 --global-batch-size 4", 8, forward);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  const std::string folded = refusal([](const Batch& batch, const Model&) -> ModelOutput {
    const Value line = line_of(batch);
    return {sum_all(line * line), {{"line", reshape(line, {2, 2})}}};
  });
  EXPECT_TRUE(
      folded.starts_with("run_forward_step predicts 'line' of shape [2,2], but the batch has 4 "
                         "samples; return one row per sample: [4, ...]"))
      << folded;
  const std::string scalar = refusal([](const Batch& batch, const Model&) -> ModelOutput {
    const Value all = sum_all(line_of(batch));
    return {all * all, {{"all", all}}};
  });
  EXPECT_TRUE(scalar.starts_with("run_forward_step predicts 'all' of shape []")) << scalar;
}

/// Nine samples in batches of 1, 4 (two devices) and 8; a target that is 0 behind the last one.
TEST(OwnLoop, TheLossOfAValidationDoesNotDependOnTheMesh) {
  const char* const kFlags[] = {"--micro-batch-size 1", "--micro-batch-size 2 --devices 2",
                                "--micro-batch-size 8"};
  const auto flags = [](const char* more) {
    return text("--epochs 1 --lr 0.1 --threads 1 --global-batch-size 8 ", more);
  };
  const auto losses_of = [](const Batch& batch) {
    const Value error = line_of(batch) - batch["target"] + 1;
    return error * error;
  };
  const Forward masked = [&](const Batch& batch, const Model&) -> ModelOutput {
    return masked_mean(losses_of(batch), batch.is_sample());
  };
  const double one = Loop(flags(kFlags[0]), 9, masked).gather().loss;
  EXPECT_GT(one, 0);
  for (const char* const more : kFlags)
    EXPECT_NEAR(Loop(flags(more), 9, masked).gather().loss / one, 1, 1e-6) << more;
  const Forward scalar = [&](const Batch& batch, const Model& model) -> ModelOutput {
    return masked(batch, model).loss.value();
  };
  const Forward unmarked = [&](const Batch& batch, const Model&) -> ModelOutput {
    return masked_mean(losses_of(batch), exp(batch["target"] * 0));
  };
  EXPECT_NEAR(Loop(flags(kFlags[0]), 9, unmarked).gather().loss / one, 1, 1e-6);
  for (const auto& [forward, why] :
       {std::pair(scalar, "a scalar loss would count its padding"),
        std::pair(unmarked,
                  "the loss reads neither labels nor batch.is_sample(), which mark padding")}) {
    SCOPED_TRACE(why);
    EXPECT_GT(Loop(flags(kFlags[2]), 16, forward).gather().loss, 0) << "whole batches";
    try {
      Loop(flags(kFlags[2]), 9, forward);
      FAIL();
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what())
                      .starts_with(text("the last validation batch has 1 of 8 "
                                        "samples, as 9 are held out, and ",
                                        why, "; return masked_mean(losses, batch.is_sample())")))
          << error.what();
    }
  }
}

namespace {

/// Samples with an id and a label, those of number 5 as they are given.
class Numbered final : public MapDataset {
 public:
  Numbered(std::int32_t id, std::int32_t label) : id_(id), label_(label) {}
  std::int64_t size() const override { return 8; }
  Features get(std::int64_t i) const override {
    return {{"id", i == 5 ? id_ : 1}, {"kind", i == 5 ? label_ : static_cast<int>(i % 2)}};
  }

 private:
  std::int32_t id_, label_;
};

/// One step over all of them, and what is wrong with it.
std::string step_over(std::int32_t id, std::int32_t label, const std::string& mesh) {
  std::ostringstream said;
  Console console{said, said};
  OwnFunctions functions;
  functions.datasets = [=]() -> Datasets {
    return {std::make_shared<Numbered>(id, label), nullptr};
  };
  functions.provide = []() -> Provided { return {ModelChoice::own_layers()}; };
  functions.forward = [](const Batch& batch, const Model&) -> ModelOutput {
    const Value row = embedding(batch["id"], "table", 4, 8).rows;
    return cross_entropy_mean(linear(row, "line", 2), batch["kind"]);
  };
  OwnLoop loop(read_rapidformer_flags(
                   split("--epochs 1 --lr 0.1 --threads 1 --global-batch-size 8 " + mesh, ' '),
                   FlagsOf::Program),
               console, std::move(functions));
  try {
    loop.backward({0, 8});
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Data) << error.what();
    return error.what();
  }
}

}  // namespace

/// A label that no class has would make the loss negative, and an id of no row a row of zeros.
TEST(OwnLoop, LabelsAndIdsOfLayersOfItsOwnAreChecked) {
  for (const std::string mesh : {"--devices 1", "--devices 2 --micro-batch-size 2"}) {
    SCOPED_TRACE(mesh);
    EXPECT_EQ(step_over(3, 1, mesh), "none");
    EXPECT_EQ(step_over(3, kIgnoredLabel, mesh), "none");
    for (const std::int32_t label : {2, 5, -1, -7, 2'000'000'000}) {
      const std::string said = step_over(3, label, mesh);
      EXPECT_TRUE(said.starts_with("batch input 'kind' of program 'train' has ")) << said;
      EXPECT_NE(said.find(text(label, " in row ")), std::string::npos) << said;
      EXPECT_NE(said.find("; labels of a cross_entropy over 2 classes are from 0 to 1, or -100 "
                          "for none; correct the data, or make what reads it larger"),
                std::string::npos)
          << said;
    }
    for (const std::int32_t id : {4, -1, kIgnoredLabel}) {
      const std::string said = step_over(id, 1, mesh);
      EXPECT_NE(said.find("; ids of the table 'table.weight' of 4 rows are from 0 to 3; "),
                std::string::npos)
          << said;
    }
  }
}

/// What a script throws is its own fault, whatever it is.
TEST(OwnLoop, WhatIsThrownNamesTheFunction) {
  class Throwing final : public MapDataset {
   public:
    explicit Throwing(std::string where) : where_(std::move(where)) {}
    std::int64_t size() const override {
      if (where_ == "size") throw std::out_of_range("no rows");
      if (where_ == "size 5") throw 5;
      return 4;
    }
    Features get(std::int64_t) const override {
      if (where_ == "get 5") throw 5;
      return {{"row", std::vector<float>{1, 2}}};
    }

   private:
    std::string where_;
  };
  struct Case {
    const char *where, *what, *in;
  };
  const Case kCases[] = {
      {"size", "no rows (std::out_of_range)", "Throwing::size()"},
      {"size 5", "an exception that is not a std::exception was thrown (int)", "Throwing::size()"},
      {"get 5", "an exception that is not a std::exception was thrown (int)", "Throwing::get(0)"},
      {"forward", "no loss (std::runtime_error)", "in forward"},
      {"forward 5", "an exception that is not a std::exception was thrown (char const*)",
       "in forward"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.where);
    const std::string where = c.where;
    std::ostringstream said;
    Console console{said, said};
    OwnFunctions functions;
    functions.datasets = [=]() -> Datasets { return {std::make_shared<Throwing>(where), nullptr}; };
    functions.provide = []() -> Provided { return {ModelChoice::own_layers()}; };
    functions.forward =
        naming("forward", Forward([=](const Batch& batch, const Model&) -> ModelOutput {
                 if (where == "forward") throw std::runtime_error("no loss");
                 if (where == "forward 5") throw "no loss";
                 return sum_all(line_of(batch));
               }));
    try {
      OwnLoop(read_rapidformer_flags(
                  split("--epochs 1 --lr 0.1 --threads 1 --global-batch-size 4", ' '),
                  FlagsOf::Program),
              console, std::move(functions));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      EXPECT_TRUE(std::string_view(error.what()).starts_with(c.what)) << error.what();
      EXPECT_NE(std::string_view(error.what()).find(c.in), std::string_view::npos) << error.what();
    }
  }
}

TEST(NumSamples, EpochsArePassesOverTheTokenFiles) {
  const std::string prefix = testing::TempDir() + "rapidformer-epochs";
  IndexedDatasetWriter writer(prefix, TokenType::U16);
  for (int document = 0; document < 10; ++document) {
    writer.add_sequence(std::vector<std::int32_t>(33, document));
    writer.end_document();
  }
  writer.finish();
  const auto samples = [&](const std::string& length) {
    RunConfig args = read_rapidformer_flags(
                         split("--global-batch-size 4 --seq-length 16 --vocab-size 16 --split "
                               "100,0,0 --data-path " +
                                   prefix + " " + length,
                               ' '),
                         FlagsOf::Program)
                         .config;
    return build_train_valid_test_datasets(args, num_samples(args)).train->size();
  };
  EXPECT_EQ(samples("--epochs 3"), (10 * 33 - 1) / 16) << "of one pass";
  EXPECT_GE(samples("--train-iters 30"), 120) << "of all steps";
}

}  // namespace tessera
