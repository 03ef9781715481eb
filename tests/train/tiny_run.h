#pragma once
/// Tiny runs in a folder of their own, for tests of the trainer.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "tessera/comm/local.h"
#include "tessera/config/presets.h"
#include "tessera/train/trainer.h"

namespace tessera {

class TrainerTest : public testing::Test {
 protected:
  explicit TrainerTest(const std::string& where = testing::TempDir()) {
    std::string name = where + "tessera-trainer-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::ofstream text(folder_ + "/text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i * 7919 % 1000 << (i % 5 == 0 ? '\n' : ' ');
  }
  ~TrainerTest() override { std::filesystem::remove_all(folder_); }

  /// Of two layers.
  RunConfig config_of(const std::string& preset, const std::string& output) const {
    RunConfig out;
    find_preset(preset).apply(out);
    out.model.layers = 2;
    out.data = {folder_ + "/text.txt"};
    out.output = folder_ + "/" + output;
    out.steps = 12;
    out.resume = "auto";
    return out;
  }
  RunConfig config(const std::string& output) const {
    RunConfig out = config_of("gpt2-tiny", output);
    out.model.dropout = 0.1;
    return out;
  }

  TrainResult run(const RunConfig& config, const TrainOptions& options = {}) {
    Problems problems;
    std::optional<PreparedRun> prepared = prepare_run(config, problems);
    problems.raise();
    return train(std::move(*prepared), CpuBackend(*device_), options);
  }

  /// The first reason why a run is refused; empty: it is not.
  static std::string refusal(const RunConfig& config) {
    Problems problems;
    prepare_run(config, problems);
    return problems.empty() ? "" : problems.list()[0].what();
  }

  void run_on_ranks(const RunConfig& config) {
    Problems problems;
    std::optional<PreparedRun> prepared = prepare_run(config, problems);
    problems.raise();
    const RunConfig complete = prepared->config;
    run_ranks(static_cast<int>(complete.parallel.devices), [&](Communicator& world) {
      const auto device = make_cpu_device({1, -1});
      if (world.rank() > 0) return follow(complete, CpuBackend(*device), world);
      TrainOptions options;
      options.world = &world;
      train(std::move(*prepared), CpuBackend(*device), options);
    });
  }

  /// The metrics of the last line of that kind.
  nlohmann::json last(const std::string& output, const std::string& kind) const {
    std::istringstream lines(file(output + "/metrics.jsonl"));
    nlohmann::json out;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      if (json.at("kind") == kind) out = json;
    }
    return out;
  }

  std::string digest_of(const std::string& output) const {
    return digest(Checkpoint::open(folder_ + "/" + output));
  }
  std::string file(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(folder_ + "/" + name).rdbuf();
    return out.str();
  }
  /// The metrics without what a clock says.
  std::string losses(const std::string& output) const {
    std::istringstream lines(file(output + "/metrics.jsonl"));
    std::string out;
    for (std::string line; std::getline(lines, line);)
      out += line.substr(0, line.find(",\"tokens_per_s\"")) + "\n";
    return out;
  }

  std::string folder_;
  std::unique_ptr<Device> device_ = make_cpu_device({2, -1});
};

/// Sets the flag when a step is done.
struct StopAfter : TrainCallback {
  explicit StopAfter(std::int64_t step) : at(step) {}
  void on_step(const StepRecord& record) override {
    if (record.step == at) stop = true;
  }
  std::int64_t at;
  std::atomic<bool> stop = false;
};

}  // namespace tessera
