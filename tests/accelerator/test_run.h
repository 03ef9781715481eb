#pragma once
/// Runs of a small model on the plugin of tests/pjrt/plugin, whose programs compute nothing: states
/// keep what init wrote, which is ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pjrt/test_plugin.h"
#include "tessera/accelerator/accelerator.h"
#include "tessera/comm/local.h"
#include "tessera/config/presets.h"
#include "tessera/train/programs.h"

namespace tessera::test {

struct Devices {
  int devices = 1, stages = 1;
};

/// The plan of each rank of GPT-2 with two layers, which is compiled once.
inline const std::vector<Plan>& plans_of(const Devices& on) {
  static std::map<std::pair<int, int>, std::vector<Plan>> made;
  std::vector<Plan>& plans = made[{on.devices, on.stages}];
  if (!plans.empty()) return plans;
  RunConfig config;
  find_preset("gpt2-tiny").apply(config);
  config.model.vocabulary = 61;
  config.model.layers = 2;
  config.parallel.devices = on.devices;
  config.parallel.pipeline = on.stages;
  config.global_batch_size = 4;
  config.micro_batch_size = on.stages > 1 ? 1 : 4 / on.devices;
  complete(config);
  const RunSetup setup(config);
  const std::unique_ptr<Device> device = make_described_device();
  const WantedPrograms wanted{.evaluate = false, .texts = 0, .local = true};
  for (int rank = 0; rank < on.devices; ++rank)
    plans.push_back(compile_programs(setup, wanted, *device, rank).plan);
  return plans;
}

inline AcceleratorOptions options_of(const pjrt::TestPlugin& plugin, int devices) {
  plugin.control().devices = devices;
  return {.plugin = plugin.file(), .folder = plugin.folder(), .devices = devices};
}

/// Calls `body` with each rank's engine, on a thread of its own.
inline void on_engines(const Backend& backend, const Devices& on,
                       const std::function<void(Engine& engine, Communicator* world)>& body) {
  const std::vector<Plan>& plans = plans_of(on);
  if (on.devices == 1) return body(*backend.start(plans[0], nullptr, {}), nullptr);
  run_ranks(on.devices, [&](Communicator& world) {
    body(*backend.start(plans[static_cast<std::size_t>(world.rank())], &world, {}), &world);
  });
}

/// A step on samples of ones.
inline void step(Engine& engine) {
  engine.run(kTrainProgram, [&](BatchInputs& batch) {
    for (const NamedTensor& input : engine.plan().program(kTrainProgram).batch)
      batch.fill_with<std::int32_t>(input.name, 1);
  });
}

/// A backend that was left behind ends its runs on threads of its own.
inline void expect_all_is_destroyed(const pjrt::TestPlugin& plugin) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (plugin.control().alive > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(plugin.control().alive, 0) << "objects of the plugin are never destroyed";
}

inline float first_float(const Engine& engine, const std::string& path) {
  float out = 0;
  std::memcpy(&out, engine.read_state(path).bytes.data(), sizeof out);
  return out;
}

/// The first parameter of the engine's stage.
inline std::string some_parameter(const Plan& plan) {
  for (const StatePlan& state : plan.states) {
    if (plan.has(state) && state.state.role == Role::Parameter) return state.state.path;
  }
  throw std::runtime_error("a stage without parameters");
}

}  // namespace tessera::test
