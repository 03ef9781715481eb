/// Loops of a program's own, and the data of templates, as the flags and functions make them.

#include "tessera/rapidformer/own_loop.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <sstream>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/data/indexed_dataset_writer.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/rapidformer/request.h"

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
      folded.starts_with("run_forward_step predicts 'line' of shape [2,2], and the batch "
                         "has 4 samples; return something of each: [4, ...]"))
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
       {std::pair(scalar, "a scalar loss counts what fills it up"),
        std::pair(unmarked, "the loss reads neither labels nor batch.is_sample(), which say so")}) {
    SCOPED_TRACE(why);
    EXPECT_GT(Loop(flags(kFlags[2]), 16, forward).gather().loss, 0) << "whole batches";
    try {
      Loop(flags(kFlags[2]), 9, forward);
      FAIL();
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what())
                      .starts_with(text("the last of the batches to validate on has 1 of 8 "
                                        "samples, as 9 are held out, and ",
                                        why, "; return masked_mean(losses, batch.is_sample())")))
          << error.what();
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
