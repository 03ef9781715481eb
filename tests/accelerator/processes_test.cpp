/// Several processes drive devices together. Here they are threads that say that they are processes;
/// tests/apps/accelerator_test.sh starts real ones.

#include "tessera/accelerator/processes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "accelerator/test_run.h"
#include "files/test_data.h"
#include "tessera/accelerator/board.h"

namespace tessera::test {
namespace {

using pjrt::error_of;
using pjrt::has;
using pjrt::TestPlugin;
using std::chrono::milliseconds;

/// Rank r is in process r / 2, two of which share a host.
ProcessName two_ranks_each(int rank) { return {text("host", rank / 4), text("process", rank / 2)}; }

TEST(Processes, AreFoundByTheirNames) {
  run_ranks(6, [](Communicator& world) {
    const Processes found = processes_of(world, two_ranks_each(world.rank()));
    EXPECT_EQ(found.all, (std::vector<ProcessRanks>{{0, 2, 0}, {2, 2, 2}, {4, 2, 0}}));
    EXPECT_EQ(found.own, world.rank() / 2);
    EXPECT_EQ(found.leads(world.rank()), world.rank() % 2 == 0);
    EXPECT_EQ(processes_of(world, this_process()).all, (std::vector<ProcessRanks>{{0, 6, 0}}));
  });
}

/// A launcher may show each process its own GPUs alone.
TEST(Processes, TakeTheGpusThatTheySee) {
  const ProcessRanks third{4, 2, 4};
  EXPECT_EQ(first_gpu(third, 0), 4);
  EXPECT_EQ(first_gpu(third, 8), 4);
  EXPECT_EQ(first_gpu(third, 2), 0);
}

TEST(Processes, HaveConsecutiveRanks) {
  const std::string error = error_of([] {
    run_ranks(3, [](Communicator& world) {
      processes_of(world, {"host", text(world.rank() % 2)});
    });
  });
  EXPECT_TRUE(has(error, "rank 2 is in the process of rank 0, and not those between")) << error;
}

TEST(Board, TellsTheOthersWhatWasPut) {
  Board one, other;
  const pjrt::KeyValueStore from = one.store(), to = other.store();
  const std::string value("with \0 and : 3:", 15);
  from.put("a key", value);
  from.put("", "");
  EXPECT_EQ(from.get("a key", milliseconds(0)), value);
  EXPECT_EQ(to.try_get("a key"), std::nullopt);
  other.add(one.take_news());
  EXPECT_EQ(one.take_news(), "");
  EXPECT_EQ(to.try_get("a key"), value);
  EXPECT_EQ(to.get("", milliseconds(0)), "");
  EXPECT_EQ(other.take_news(), "");  // it is known to all
  const std::string late = error_of([&] { to.get("none", milliseconds(20)); });
  EXPECT_TRUE(has(late, "no process has published 'none' within 20 ms")) << late;
  other.close("rank 1 has died");
  const std::string closed = error_of([&] { to.get("none", std::chrono::hours(1)); });
  EXPECT_EQ(closed, "rank 1 has died");
  EXPECT_TRUE(has(error_of([&] { other.add("5:abc"); }), "plugin tells is damaged"));
}

/// Calls `body` with the engines of four ranks in two processes.
void on_processes(const TestPlugin& plugin, const Devices& on,
                  const std::function<void(Engine& engine, Communicator& world)>& body,
                  const std::string& caches = "") {
  const AcceleratorOptions common = options_of(plugin, on.devices / 2);
  const std::vector<Plan>& plans = plans_of(on);
  LocalOptions patient;
  patient.deadline = milliseconds(5000);
  run_ranks(
      on.devices,
      [&](Communicator& world) {
        AcceleratorOptions options = common;
        if (!caches.empty()) options.cache = text(caches, "/", world.rank() / 2);
        const std::shared_ptr<Accelerator> accelerator =
            make_accelerator(options, world, two_ranks_each(world.rank()));
        body(*accelerator->start(plans[static_cast<std::size_t>(world.rank())], &world, {}), world);
      },
      patient);
}

TEST(Processes, RunOneExecutionTogether) {
  const TestPlugin plugin;
  on_processes(plugin, {4, 1}, [](Engine& engine, Communicator&) {
    engine.run(kInitProgram);
    for (int steps = 0; steps < 2; ++steps) step(engine);
    EXPECT_EQ(engine.scalar(kTrainProgram, "loss"), 1);
    EXPECT_EQ(first_float(engine, some_parameter(engine.plan())), 1);
  });
  EXPECT_EQ(plugin.control().executions, 2 * 3);  // each process its part of init and two steps
  EXPECT_EQ(plugin.control().alive, 0);
}

/// Where one of them lacks a program, all compile: their compilers may wait for each other.
TEST(Processes, LoadWhatAllHaveKept) {
  const TestFolder folder;
  const TestPlugin plugin;  // its file is part of what programs are kept under
  const auto compiled = [&] {
    constexpr int kMany = 1000;
    plugin.control().fail_at = "PJRT_Client_Compile";
    plugin.control().passing = kMany;
    on_processes(
        plugin, {4, 1}, [](Engine& engine, Communicator&) { engine.run(kInitProgram); },
        folder.path());
    return kMany - plugin.control().passing;
  };
  const int all = compiled();
  EXPECT_GT(all, 0);
  EXPECT_EQ(compiled(), 0);
  std::filesystem::remove_all(folder.path() + "/1");
  EXPECT_EQ(compiled(), all);
  EXPECT_EQ(compiled(), 0);
}

TEST(Processes, EachCallFails) {
  plans_of({4, 1});
  int failed = 0;
  for (const pjrt::c::CallName& row : pjrt::c::call_names()) {
    SCOPED_TRACE(row.name);
    const TestPlugin plugin;
    plugin.control().fail_at = row.name;
    const std::string error = error_of([&] {
      on_processes(plugin, {4, 1}, [](Engine& engine, Communicator&) {
        engine.run(kInitProgram);
        step(engine);
        engine.scalar(kTrainProgram, "loss");
      });
    });
    EXPECT_EQ(plugin.control().alive, 0);
    if (error.empty()) continue;
    ++failed;
    EXPECT_TRUE(has(error, row.name)) << error;
  }
  EXPECT_GE(failed, 30);
}

/// One that comes to an end while the others wait for its client is named.
TEST(Processes, OneThatDoesNotComeIsNamed) {
  const TestPlugin plugin;
  const AcceleratorOptions options = options_of(plugin, 1);
  const std::string error = error_of([&] {
    run_ranks(2, [&](Communicator& world) {
      const ProcessName name = {"host", text(world.rank())};
      if (world.rank() == 0) make_accelerator(options, world, name);
      processes_of(world, name);
      fail(Fault::Usage, "the driver of this host is too old");
    });
  });
  EXPECT_TRUE(has(error, "the driver of this host is too old\n    rank 1 of 2")) << error;
  expect_all_is_destroyed(plugin);
}

/// As XLA's CPU, which does not look at num_nodes.
TEST(Processes, APluginThatDoesNotJoinThem) {
  const TestPlugin plugin;
  plugin.control().joins = false;
  const std::string error = error_of([&] { on_processes(plugin, {4, 1}, [](auto&, auto&) {}); });
  EXPECT_TRUE(has(error, plugin.file() + " sees no devices but those of its own process, and the "
                                         "run has 2 processes: it does not join them; start one"))
      << error;
  EXPECT_EQ(plugin.control().alive, 0);
}

TEST(Processes, HaveTheDevicesOfTheirRanks) {
  const TestPlugin plugin;
  const AcceleratorOptions options = options_of(plugin, 1);
  const std::string error = error_of([&] {
    run_ranks(4, [&](Communicator& world) {
      make_accelerator(options, world, two_ranks_each(world.rank()));
    });
  });
  EXPECT_TRUE(has(error, "of 2 is to drive 2 devices, and " + plugin.file() + " has 1 there"))
      << error;
}

TEST(Processes, AStageIsNotCutOff) {
  const TestPlugin plugin;
  const std::string error = error_of([&] { on_processes(plugin, {4, 2}, [](auto&, auto&) {}); });
  EXPECT_TRUE(has(error, "the plan has 2 stages, and the run 2 processes")) << error;
}

}  // namespace
}  // namespace tessera::test
