/// Runs of models with experts: the same losses however experts are shared out, whatever their loads
/// are, and through a resume on other meshes.

#include <cmath>
#include <numeric>

#include "tessera/models/parameter_shapes.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

class ExpertRun : public TrainerTest {
 protected:
  RunConfig with_experts(const std::string& output) const {
    RunConfig out = config_of("mixtral-tiny", output);
    out.steps = 6;
    return out;
  }
  static RunConfig over(RunConfig config, std::int64_t devices, std::int64_t experts) {
    config.parallel.devices = devices;
    config.parallel.experts = experts;
    return config;
  }
  double last_loss(const std::string& output) const {
    return last(output, "train").at("loss").get<double>();
  }
};

TEST_F(ExpertRun, CountsEveryChoice) {
  RunConfig config = with_experts("one");
  config.model.experts.z_loss = 0.1;
  run(config);
  const nlohmann::json line = last("one", "train");
  EXPECT_EQ(line.at("tokens"), 8 * 32);
  EXPECT_EQ(line.at("dropped_fraction"), 0);
  ASSERT_EQ(line.at("tokens_per_expert").size(), 2U);
  double largest = 0;
  for (const nlohmann::json& layer : line.at("tokens_per_expert")) {
    const auto counts = layer.get<std::vector<double>>();
    EXPECT_EQ(counts.size(), 4U);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.0), 2 * 8 * 32);
    for (const double count : counts) largest = std::max(largest, count / (2 * 8 * 32 / 4.0));
  }
  EXPECT_NEAR(line.at("largest_load").get<double>(), largest, 1e-6);
  const auto number = [&](const char* key) { return line.at(key).get<double>(); };
  EXPECT_NEAR(number("loss"),
              number("lm_loss") + 0.01 * number("aux_loss") + 0.1 * number("z_loss"), 1e-5);
  EXPECT_GE(number("aux_loss"), 2 * 0.99);  // of each layer at least 1, where both are even
}

TEST_F(ExpertRun, LoadsOfAnyKindAreTheSameOnEveryMesh) {
  struct Load {
    const char* name;
    std::int64_t experts, chosen;
  };
  for (const auto& [name, experts, chosen] : {Load{"some", 5, 2}, Load{"all", 3, 3},
                                              Load{"more than tokens", 64, 1}, Load{"one", 2, 1}}) {
    SCOPED_TRACE(name);
    RunConfig config = with_experts(text(name, "-one"));
    config.model.experts.experts = experts;
    config.model.experts.chosen = chosen;
    run(config);
    for (const auto& [devices, shares] : {std::pair(2, 2), {2, 1}, {4, 2}}) {
      const std::string output = text(name, "-", devices, "-", shares);
      RunConfig other = over(config, devices, shares);
      other.output = folder_ + "/" + output;
      run_on_ranks(other);
      EXPECT_NEAR(last_loss(output), last_loss(text(name, "-one")), 1e-5) << output;
      EXPECT_EQ(last(output, "train").at("tokens_per_expert"),
                last(text(name, "-one"), "train").at("tokens_per_expert"));
    }
  }
}

TEST_F(ExpertRun, GoesOnWithExpertsSharedOutOtherwise) {
  RunConfig whole = with_experts("whole"), parts = with_experts("parts");
  run(whole);
  parts.exit_interval = 2;
  run(parts);
  run_on_ranks(over(parts, 4, 4));
  parts.exit_interval = 0;
  run_on_ranks(over(parts, 2, 2));
  EXPECT_NEAR(last_loss("parts"), last_loss("whole"), 1e-5);
}

/// The bias of each router, whose rate here is a power of two, so that it is the same number however
/// loads are added up.
std::vector<std::vector<double>> biases_of(const std::string& folder) {
  std::vector<std::vector<double>> out;
  const Checkpoint checkpoint = Checkpoint::open(folder);
  for (const TensorEntry& entry : checkpoint.tensors()) {
    if (entry.role != Role::Buffer) continue;
    std::vector<float> numbers(static_cast<std::size_t>(entry.type.numel()));
    checkpoint.read(entry.name, std::as_writable_bytes(std::span(numbers)));
    out.emplace_back(numbers.begin(), numbers.end());
  }
  return out;
}

TEST_F(ExpertRun, BiasesFollowLoadsThroughResumes) {
  RunConfig whole = with_experts("whole");
  whole.steps = 5;  // an even number brings them back to 0
  whole.model.experts.score = RouterScore::Sigmoid;
  whole.model.experts.bias = true;
  whole.model.experts.bias_rate = 0.125;
  RunConfig parts = whole;
  parts.output = folder_ + "/parts";
  run(whole);
  std::vector<std::vector<double>> expected(2, std::vector<double>(4, 0));
  std::istringstream lines(file("whole/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json step = nlohmann::json::parse(line);
    if (step.at("kind") != "train") continue;
    for (std::size_t layer = 0; layer < 2; ++layer)
      for (std::size_t e = 0; e < 4; ++e) {
        const double more = 2 * 8 * 32 / 4.0 - step["tokens_per_expert"][layer][e].get<double>();
        expected[layer][e] += more == 0 ? 0 : std::copysign(0.125, more);
      }
  }
  EXPECT_EQ(biases_of(folder_ + "/whole"), expected);
  EXPECT_NE(expected[0], std::vector<double>(4, 0));
  parts.exit_interval = 2;
  run(parts);
  run_on_ranks(over(parts, 4, 4));
  parts.exit_interval = 0;
  run_on_ranks(over(parts, 2, 1));
  EXPECT_NEAR(last_loss("parts"), last_loss("whole"), 1e-5);
  EXPECT_EQ(biases_of(folder_ + "/parts"), expected);
}

TEST_F(ExpertRun, ACapacityDropsTheSameOnEveryMesh) {
  RunConfig config = with_experts("one");
  config.model.experts.capacity = 0.5;
  config.model.experts.samples = 2;
  config.eval_at_end = true;
  run(config);
  const double dropped = last("one", "train").at("dropped_fraction").get<double>();
  EXPECT_GT(dropped, 0.4);
  EXPECT_LT(dropped, 1);
  for (const auto& [devices, shares] : {std::pair(2, 2), {4, 2}}) {
    const std::string output = text(devices, "-", shares);
    RunConfig other = over(config, devices, shares);
    other.output = folder_ + "/" + output;
    run_on_ranks(other);
    EXPECT_NEAR(last_loss(output), last_loss("one"), 1e-5) << output;
    EXPECT_EQ(last(output, "train").at("dropped_fraction"), dropped);
    EXPECT_NEAR(last(output, "valid").at("loss").get<double>(),
                last("one", "valid").at("loss").get<double>(), 1e-5);
  }
}

/// As exports ask for them, of a batch of one sample.
TEST_F(ExpertRun, AModelOfGroupsHasShapes) {
  RunConfig config = with_experts("groups");
  config.model.experts.samples = 4;
  EXPECT_TRUE(parameter_shapes(config.model).contains("layers.1.mlp.router.weight"));
}

/// The last batch of a validation is filled up, and how far depends on the mesh.
TEST_F(ExpertRun, ValidationsMeasureTheSameOnEveryMesh) {
  RunConfig config = with_experts("one");
  config.model.experts.balance = 0.5;
  config.eval_at_end = true;
  run(config);
  const double loss = last("one", "valid").at("loss").get<double>();
  for (const std::int64_t devices : {2, 3, 4}) {
    const std::string output = text(devices);
    RunConfig other = over(config, devices, 1);
    other.output = folder_ + "/" + output;
    run_on_ranks(other);
    EXPECT_NEAR(last(output, "valid").at("loss").get<double>(), loss, 1e-5) << devices;
  }
}

TEST_F(ExpertRun, WhatDoesNotFitIsRefused) {
  const auto refused = [&](auto change) {
    RunConfig config = with_experts("none");
    change(config);
    return refusal(config);
  };
  EXPECT_NE(refused([](RunConfig& c) {
              c.model.experts.chosen = 5;
            }).find("moe-router-topk is 5, of num-experts 4"),
            std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) {
              c.parallel.devices = c.parallel.experts = 5;
            }).find("expert-model-parallel-size 5 is more than the 4 experts of a layer"),
            std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) {
              c.parallel.experts = 2;
            }).find("expert-model-parallel-size 2 does not divide the 1 data parallel devices"),
            std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) {
              c.parallel.devices = 2, c.micro_batch_size = 2, c.model.experts.samples = 4;
            }).find("moe-aux-loss-samples 4 does not divide the 2 samples of a micro-batch"),
            std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) {
              c.model.experts.bias = true;
            }).find("give moe-router-score-function sigmoid"),
            std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) {
              c.model.lora.rank = 2, c.model.lora.targets = {"q", "up"};
            }).find("lora-targets has up, and experts have no adapters"),
            std::string::npos);
  EXPECT_NE(refused([](RunConfig& c) {
              c.model.family = "llama", c.parallel.devices = c.parallel.experts = 2;
            }).find("the model of family llama has none"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
