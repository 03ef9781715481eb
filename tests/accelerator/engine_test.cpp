/// Engines on a plugin that fails: one clear error, no hang, nothing leaks.

#include "tessera/accelerator/engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "accelerator/test_run.h"
#include "files/test_data.h"

namespace tessera::test {
namespace {

using pjrt::error_of;
using pjrt::has;
using pjrt::TestPlugin;

constexpr Devices kDevices[] = {{1, 1}, {2, 1}, {2, 2}};

/// Initial states, a state that is written and read, two steps, a metric.
void whole_story(const TestPlugin& plugin, const Devices& on, const std::string& cache = "") {
  AcceleratorOptions options = options_of(plugin, on.devices);
  options.cache = cache;
  const std::shared_ptr<Accelerator> accelerator = make_accelerator(options);
  on_engines(*accelerator, on, [](Engine& engine, Communicator*) {
    const std::string path = some_parameter(engine.plan());
    engine.run(kInitProgram);
    EXPECT_EQ(first_float(engine, path), 1);
    engine.write_state(path,
                       [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{0}); });
    for (int steps = 0; steps < 2; ++steps) step(engine);
    EXPECT_EQ(first_float(engine, path), 0);
    EXPECT_EQ(engine.scalar(kTrainProgram, "loss"), 1);
  });
}

TEST(Engine, RunsOnThePluginOfTheTests) {
  for (const Devices& on : kDevices) {
    const TestPlugin plugin;
    EXPECT_EQ(error_of([&] { whole_story(plugin, on); }), "");
    EXPECT_GT(plugin.control().executions, 0);
    EXPECT_EQ(plugin.control().alive, 0);
  }
}

/// What the plugin only tells can be missing, and nobody hears of a destructor that fails.
bool is_silent(std::string_view name) {
  return has(std::string(name), "Destroy") || has(std::string(name), "PJRT_Error_");
}

void expect_clear(const TestPlugin& plugin, const std::string& error, std::string_view call) {
  EXPECT_EQ(plugin.control().alive, 0);
  if (plugin.control().failed == 0 || is_silent(call)) {
    EXPECT_EQ(error, "");
    return;
  }
  EXPECT_TRUE(has(error, plugin.file() + ": " + std::string(call) + ": INTERNAL: as the test"))
      << error;
  EXPECT_TRUE(has(error, "; ")) << error;
}

/// The device is lost: so do all calls behind the first that fails.
TEST(Engine, EachCallFails) {
  for (const Devices& on : kDevices) {
    int failed = 0;
    for (const pjrt::c::CallName& row : pjrt::c::call_names()) {
      bool called = true;
      for (const int passing : {0, 4}) {
        if (!called) continue;
        SCOPED_TRACE(text(row.name, " of ", on.devices, " devices after ", passing));
        const TestPlugin plugin;
        plugin.control().fail_at = row.name;
        plugin.control().passing = passing;
        const std::string error = error_of([&] { whole_story(plugin, on); });
        called = plugin.control().failed > 0;
        failed += called ? 1 : 0;
        expect_clear(plugin, error, row.name);
      }
    }
    EXPECT_GE(failed, 40);
  }
}

/// One execution fails, and the plugin goes on: states that it did not take over can be read, and no
/// run begins on what is left.
TEST(Engine, StatesThatAreLeftCanBeRead) {
  for (const Devices& on : kDevices) {
    SCOPED_TRACE(text(on.devices, " devices, ", on.stages, " stages"));
    const TestPlugin plugin;
    {
      const std::shared_ptr<Accelerator> accelerator =
          make_accelerator(options_of(plugin, on.devices));
      const std::string failed = error_of([&] {
        on_engines(*accelerator, on, [&](Engine& engine, Communicator* world) {
          engine.run(kInitProgram);
          const std::string path = some_parameter(engine.plan());
          if (world != nullptr) world->run(Collective::barrier("before"), nullptr, nullptr);
          if (engine.plan().rank == 0) {
            plugin.control().once = true;
            plugin.control().fail_at = "PJRT_LoadedExecutable_Execute";
          }
          if (world != nullptr) world->run(Collective::barrier("behind"), nullptr, nullptr);
          const std::string error = error_of([&] { step(engine); });
          EXPECT_NE(error, "");
          EXPECT_EQ(first_float(engine, path), 1);
          if (world == nullptr) {
            const std::string again = error_of([&] { step(engine); });
            EXPECT_TRUE(has(again, "no program runs after one has failed; resume")) << again;
          }
          fail(Fault::Resource, error);
        });
      });
      EXPECT_TRUE(has(failed, "PJRT_LoadedExecutable_Execute: INTERNAL")) << failed;
      EXPECT_TRUE(accelerator->failed());
    }
    EXPECT_EQ(plugin.control().alive, 0);
  }
}

/// What a step took over is lost with it, and said so.
TEST(Engine, StatesThatAreLostAreNamed) {
  const TestPlugin plugin;
  const std::shared_ptr<Accelerator> accelerator = make_accelerator(options_of(plugin, 1));
  on_engines(*accelerator, {}, [&](Engine& engine, Communicator*) {
    engine.run(kInitProgram);
    const auto deleted = +[](pjrt::c::BufferIsDeleted* of) -> pjrt::c::Error* {
      of->answer = true;
      return nullptr;
    };
    constexpr auto kPlace = static_cast<std::size_t>(pjrt::c::Call::BufferIsDeleted);
    plugin.control().api->calls[kPlace] = reinterpret_cast<void (*)()>(deleted);
    const std::string path = some_parameter(engine.plan());
    const std::string error = error_of([&] { engine.read_state(path); });
    EXPECT_TRUE(has(error, text("state '", path, "' was lost with a run that failed"))) << error;
  });
}

/// What a program wants, what there is, and the flags that make it less.
TEST(Engine, SaysWhatMemoryIsWanted) {
  const std::string there =
      "a device has 1000 B, with 5 B in use; less is needed with a lower "
      "--micro-batch-size (the same numbers), --recompute-granularity full, ";
  const struct {
    const char *call, *wanted;
    int passing;
  } cases[] = {
      {"PJRT_Client_Compile", "program init wants about ", 0},
      {"PJRT_LoadedExecutable_Execute",
       "program init wants 445 B as its compiler says (arguments 20 B, results beside them 25 B, "
       "temporaries 400 B), and ",
       0},
      {"PJRT_LoadedExecutable_Execute", "program train wants 445 B", 1},
      {"PJRT_Event_OnReady", "program train wants 445 B", 4},
      {"PJRT_Client_BufferFromHostBuffer", "program train wants 445 B", 2},
  };
  for (const auto& row : cases) {
    SCOPED_TRACE(text(row.call, " ", row.wanted));
    const TestPlugin plugin;
    plugin.control().fail_at = row.call;
    plugin.control().passing = row.passing;
    plugin.control().fail_code = pjrt::c::Code::ResourceExhausted;
    const std::string error = error_of([&] { whole_story(plugin, {}); });
    EXPECT_TRUE(has(error, text(row.call, ": RESOURCE_EXHAUSTED: as the test wants it"))) << error;
    EXPECT_TRUE(has(error, row.wanted)) << error;
    EXPECT_TRUE(has(
        error, there + "more --devices and --zero-stage 3 or --bf16; --memory-cap 1000 chooses"))
        << error;
  }
}

TEST(Engine, WaitsForALateDevice) {
  const TestPlugin plugin;
  plugin.control().late = std::chrono::milliseconds(60);
  EXPECT_EQ(error_of([&] { whole_story(plugin, {2, 2}); }), "");
  EXPECT_EQ(plugin.control().alive, 0);
}

/// A rank fails while the device is at a run that does not end: nobody waits for it, and what it
/// uses stays until it has ended.
TEST(Engine, ARankFailsWhileTheDeviceHangs) {
  const TestPlugin plugin;
  plugin.control().hold = true;
  {
    const std::shared_ptr<Accelerator> accelerator = make_accelerator(options_of(plugin, 2));
    const std::string error = error_of([&] {
      on_engines(*accelerator, {2, 1}, [&](Engine& engine, Communicator* world) {
        if (world->rank() == 0) return engine.run(kInitProgram);
        meet(world, "arguments of a program");  // as that run does
        while (plugin.control().executions < 1) std::this_thread::yield();
        fail(Fault::Usage, "a row of the data is damaged");
      });
    });
    EXPECT_TRUE(has(error, "a row of the data is damaged")) << error;
    EXPECT_TRUE(accelerator->failed());
    EXPECT_GT(plugin.control().alive, 0);
    plugin.control().hold = false;
  }
  expect_all_is_destroyed(plugin);
}

/// A run on devices of which one hangs: what the others tell is heard, and at last that it hangs.
TEST(Engine, ADeviceHangs) {
  const struct {
    const char* what;
    bool fails;  // the last device, while the first hangs
    Devices on;
    const char* error;
  } cases[] = {
      {"one alone", false, {1, 1}, "plugin.so: program init shows no sign of life for 0.2 s: "},
      {"of two", false, {2, 1}, "plugin.so: program init shows no sign of life for 0.2 s: "},
      {"of two stages", false, {2, 2}, "plugin.so: program init shows no sign of life for 0.2 s: "},
      {"one fails", true, {2, 1}, "PJRT_Event_OnReady: INTERNAL: device 1 fell off the bus"},
      {"one stage fails", true, {2, 2}, "PJRT_Event_OnReady: INTERNAL: device 1 fell off the bus"},
  };
  for (const auto& row : cases) {
    SCOPED_TRACE(row.what);
    const TestPlugin plugin;
    plugin.control().hold_device = 0;
    if (row.fails) plugin.control().fail_device = 1;
    {
      AcceleratorOptions options = options_of(plugin, row.on.devices);
      if (!row.fails) options.patience = std::chrono::milliseconds(200);
      const std::shared_ptr<Accelerator> accelerator = make_accelerator(options);
      const std::string error = error_of([&] {
        on_engines(*accelerator, row.on, [](Engine& engine, auto*) { engine.run(kInitProgram); });
      });
      EXPECT_TRUE(has(error, row.error)) << error;
      EXPECT_TRUE(accelerator->failed());
      EXPECT_GT(plugin.control().alive, 0);
      plugin.control().hold_device = -1;
    }
    expect_all_is_destroyed(plugin);
  }
}

/// Whichever call fails, what the device has is not touched any more while the backend lives.
TEST(Engine, WhatIsOnADeviceThatFailsStays) {
  for (const char* call : {"PJRT_Client_BufferFromHostBuffer", "PJRT_Buffer_ToHostBuffer"}) {
    SCOPED_TRACE(call);
    const TestPlugin plugin;
    const std::shared_ptr<Accelerator> accelerator = make_accelerator(options_of(plugin, 1));
    int alive = 0;
    const std::string error = error_of([&] {
      on_engines(*accelerator, {}, [&](Engine& engine, Communicator*) {
        engine.run(kInitProgram);
        alive = plugin.control().alive;
        plugin.control().fail_at = call;
        const std::string path = some_parameter(engine.plan());
        if (std::string_view(call) == "PJRT_Buffer_ToHostBuffer") engine.read_state(path);
        engine.write_state(path, [](std::span<std::byte>) {});
      });
    });
    EXPECT_TRUE(has(error, call)) << error;
    EXPECT_EQ(plugin.control().alive, alive);
    EXPECT_TRUE(accelerator->failed());
  }
}

/// Two sessions of one backend, at one time.
TEST(Engine, PlansDoNotMix) {
  const TestPlugin plugin;
  plans_of({2, 2});  // not by two threads
  {
    const std::shared_ptr<Accelerator> accelerator = make_accelerator(options_of(plugin, 2));
    on_engines(*accelerator, {2, 1}, [&](Engine& one, Communicator* world) {
      const std::unique_ptr<Engine> other =
          accelerator->start(plans_of({2, 2})[static_cast<std::size_t>(world->rank())], world, {});
      for (Engine* engine : {&one, other.get()}) engine->run(kInitProgram);
      for (int steps = 0; steps < 2; ++steps) {
        for (Engine* engine : {&one, other.get()}) step(*engine);
      }
      EXPECT_EQ(other->scalar(kTrainProgram, "loss"), 1);
    });
  }
  EXPECT_EQ(plugin.control().alive, 0);
}

/// A plugin that cannot write programs down works as one without a cache.
TEST(Engine, APluginWithoutSerialize) {
  for (const char* call : {"PJRT_Executable_Serialize", "PJRT_Executable_DeserializeAndLoad"}) {
    const TestFolder folder;
    const TestPlugin plugin;
    EXPECT_EQ(error_of([&] { whole_story(plugin, {}, folder.path()); }), "");
    plugin.control().fail_at = call;
    plugin.control().fail_code = pjrt::c::Code::Unimplemented;
    EXPECT_EQ(error_of([&] { whole_story(plugin, {2, 2}, folder.path()); }), "");
    EXPECT_EQ(error_of([&] { whole_story(plugin, {}, folder.path()); }), "");
    plugin.control().fail_code = pjrt::c::Code::Internal;  // a program of another driver
    EXPECT_EQ(error_of([&] { whole_story(plugin, {}, folder.path()); }), "");
    EXPECT_GT(plugin.control().failed, 0);
    EXPECT_EQ(plugin.control().alive, 0);
    EXPECT_FALSE(plugin.load().failed());
  }
}

/// Programs that were kept are loaded, on as many devices as they were compiled for.
TEST(Engine, LoadsWhatWasKept) {
  const TestFolder folder;
  const TestPlugin plugin;
  whole_story(plugin, {2, 1}, folder.path());
  plugin.control().fail_at = "PJRT_Client_Compile";
  EXPECT_EQ(error_of([&] { whole_story(plugin, {2, 1}, folder.path()); }), "");
  EXPECT_EQ(plugin.control().failed, 0);
}

/// What takes too much is compiled twice, and both are kept, by their flags.
TEST(Engine, KeepsProgramsThatWereCompiledToTakeLess) {
  const TestFolder folder;
  const TestPlugin plugin;
  plugin.control().platform = "cuda";
  const auto compiled = [&](std::optional<std::int64_t> most) {
    constexpr int kMany = 1000;
    plugin.control().fail_at = "PJRT_Client_Compile";
    plugin.control().passing = kMany;
    AcceleratorOptions options = options_of(plugin, 2);
    options.cache = folder.path();
    options.most_bytes = most;
    const std::shared_ptr<Accelerator> accelerator = make_accelerator(options);
    on_engines(*accelerator, {2, 1}, [](Engine& engine, auto*) {
      engine.run(kInitProgram);
      step(engine);
    });
    return kMany - plugin.control().passing;
  };
  const int programs = compiled(std::nullopt);
  EXPECT_GT(programs, 0);
  EXPECT_EQ(compiled(1), programs) << "those that take less";
  EXPECT_EQ(compiled(1), 0);
  EXPECT_EQ(compiled(std::nullopt), 0);
}

}  // namespace
}  // namespace tessera::test
