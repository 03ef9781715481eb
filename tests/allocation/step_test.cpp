/// What a training step allocates, and what it leaves resident: the trainer's whole loop from one
/// step to the next, metrics included, is watched from a callback.

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "allocation/counting.h"
#include "tessera/config/presets.h"
#include "tessera/train/trainer.h"

namespace tessera {
namespace {

using testing::Allocations;
using testing::allocations;
using testing::count_allocations;

class StepTest : public ::testing::Test {
 protected:
  StepTest() {
    std::string name = ::testing::TempDir() + "tessera-step-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::ofstream text(folder_ + "/text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i * 7919 % 1000 << (i % 5 == 0 ? '\n' : ' ');
  }
  ~StepTest() override { std::filesystem::remove_all(folder_); }

  void train_with(TrainCallback& callback, const std::string& preset, std::int64_t micro_batch,
                  std::int64_t steps, int threads = 1, bool offloads = false) {
    RunConfig config;
    find_preset(preset).apply(config);
    config.offload_optimizer = config.offload_gradients = offloads;
    config.offload_parameters = config.offload_activations = offloads;
    config.data = {folder_ + "/text.txt"};
    config.micro_batch_size = micro_batch;
    train_with(callback, config, steps, threads);
  }

  void train_with(TrainCallback& callback, RunConfig config, std::int64_t steps, int threads) {
    config.model.dropout = 0.1;
    config.output = text(folder_, "/", runs_++);
    config.steps = steps;
    config.eval_at_end = false;
    Problems problems;
    std::optional<PreparedRun> run = prepare_run(config, problems);
    problems.raise();
    const std::unique_ptr<Device> device = make_cpu_device({threads, -1});
    train(std::move(*run), CpuBackend(*device), {{&callback}});
  }

  std::string folder_;
  int runs_ = 0;
};

/// Counts from the end of step 2 to that of the last; does nothing else.
struct Counter : TrainCallback {
  static constexpr std::int64_t kSteps = 7;
  std::array<Allocations, kSteps + 1> after{};  // step -> since the end of step 2
  void on_step(const StepRecord& record) override {
    if (record.step == 2) count_allocations(true);
    after[static_cast<std::size_t>(record.step)] = allocations();
    if (record.step == kSteps) count_allocations(false);
  }
};

TEST_F(StepTest, TesseraAllocatesNothingAndLibrariesTheSameEachTime) {
  for (const char* preset : {"gpt2-tiny", "llama-tiny", "nanogpt-shakespeare-cpu"}) {
    for (const std::int64_t micro_batch : {0, 2}) {  // 0: the whole batch
      SCOPED_TRACE(text(preset, " ", micro_batch));
      Counter counter;
      train_with(counter, preset, micro_batch, Counter::kSteps, 2);
      EXPECT_EQ(counter.after.back().ours, 0) << testing::first_stacks();
      const std::int64_t each = counter.after[3].library;
      for (std::size_t step = 3; step <= Counter::kSteps; ++step)
        EXPECT_EQ(counter.after[step].library - counter.after[step - 1].library, each) << step;
      std::cout << preset << ", micro-batches of " << micro_batch << ": " << each
                << " allocations of libraries in each step\n";
    }
  }
}

/// Nor does the thread that copies: how many copies it is behind differs from step to step.
TEST_F(StepTest, TesseraAllocatesNothingWhileItOffloads) {
  for (const std::int64_t micro_batch : {0, 2}) {
    SCOPED_TRACE(micro_batch);
    Counter counter;
    train_with(counter, "gpt2-tiny", micro_batch, Counter::kSteps, 2, true);
    EXPECT_EQ(counter.after.back().ours, 0) << testing::first_stacks();
  }
}

/// Nor do the samples of tables.
TEST_F(StepTest, TesseraAllocatesNothingForRows) {
  std::ofstream rows(folder_ + "/rows.csv");
  rows << "a,b\n";
  for (int i = 0; i < 400; ++i) rows << i * 7919 % 1000 << ',' << i * i % 1000 << '\n';
  rows.close();
  for (const char* packing : {"wrapped", "none", "bfd", "pairs"}) {
    SCOPED_TRACE(packing);
    const bool pairs = std::string_view(packing) == "pairs";
    RunConfig config;
    find_preset(pairs ? "transformer-tiny" : "gpt2-tiny").apply(config);
    config.data = {folder_ + "/rows.csv"};
    config.text_column = "a";
    pairs ? config.target_column = "b" : config.packing = packing;
    Counter counter;
    train_with(counter, config, Counter::kSteps, 2);
    EXPECT_EQ(counter.after.back().ours, 0) << testing::first_stacks();
  }
}

/// So that the compiler does not leave out an allocation that nobody uses.
void* used(void* memory) {
  static void* volatile sink;
  sink = memory;
  return sink;
}

/// One that allocates by the means named.
struct Careless : Counter {
  void (*allocate)() = nullptr;
  void on_step(const StepRecord& record) override {
    if (record.step == 5) allocate();
    Counter::on_step(record);
  }
};

TEST_F(StepTest, TheCounterSeesEveryWayToAllocate) {
  using Way = void (*)();
  const Way ways[] = {
      [] { ::operator delete(used(::operator new(8))); },
      [] {
        ::operator delete (used(::operator new (8, std::align_val_t{64})), std::align_val_t{64});
      },
      [] { std::free(used(std::malloc(8))); },
      [] { std::free(used(std::calloc(1, 8))); },
      [] { std::free(used(std::aligned_alloc(64, 64))); },
      [] {
        void* memory = nullptr;
        EXPECT_EQ(posix_memalign(&memory, 64, 8), 0);
        std::free(memory);
      },
      [] { std::free(used(std::realloc(nullptr, 8))); },
      [] {
        std::string text(100, 'x');
        used(text.data());
        used(text.append(200, 'y').data());
      },
      [] { std::free(used(strdup("in the C library"))); },
  };
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    Careless careless;
    careless.allocate = ways[i];
    train_with(careless, "gpt2-tiny", 8, Counter::kSteps);
    EXPECT_GE(careless.after.back().ours, 1) << i;
    EXPECT_EQ(careless.after[4].ours, 0) << i;
  }
}

/// Kilobytes of this process that are resident, counted page by page.
std::int64_t resident_kib(const char* what) {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    if (starts_with(line, what)) return std::stoll(line.substr(std::string(what).size()));
  }
  return -1;
}

struct Resident : TrainCallback {
  static constexpr std::int64_t kSteps = 300;
  std::vector<std::int64_t> rss, anonymous, heap;
  void on_step(const StepRecord& record) override {
    if (record.step != 2 && record.step % 50 != 0) return;
    malloc_trim(0);  // what compiling freed would hide what steps keep
    rss.push_back(resident_kib("Rss:"));
    anonymous.push_back(resident_kib("Anonymous:"));
    const struct mallinfo2 info = mallinfo2();
    heap.push_back(static_cast<std::int64_t>(info.uordblks + info.hblkhd));
  }
};

TEST_F(StepTest, ResidentMemoryIsFlatAfterTheSecondStep) {
  Resident resident;
  train_with(resident, "gpt2-tiny", 4, Resident::kSteps);
  ASSERT_EQ(resident.rss.size(), 7u);
  ASSERT_GT(resident.rss[0], 0);
  std::cout << "resident KiB: " << join(resident.rss)
            << "\nof them anonymous: " << join(resident.anonymous)
            << "\nbytes of the heap in use: " << join(resident.heap) << "\n";
  // Code that runs for the first time comes in windows of 16 file pages, a stack grows by a page or
  // two. Blocks that the allocator keeps at hand for a thread
  // count as used: 28 bytes a step would be seen.
  for (std::size_t i = 1; i < resident.rss.size(); ++i) {
    EXPECT_LE(resident.rss[i] - resident.rss[0], 64) << i;
    EXPECT_LE(resident.anonymous[i] - resident.anonymous[0], 16) << i;
    EXPECT_LE(resident.heap[i] - resident.heap[0], 8 * 1024) << i;
  }
}

struct Hoarder : Resident {
  std::vector<std::unique_ptr<char[]>> kept;
  void on_step(const StepRecord& record) override {
    kept.push_back(std::make_unique<char[]>(16 * 1024));
    Resident::on_step(record);
  }
};

TEST_F(StepTest, WhatStepsKeepIsSeen) {
  Hoarder hoarder;
  train_with(hoarder, "gpt2-tiny", 8, Resident::kSteps);
  EXPECT_GE(hoarder.heap.back() - hoarder.heap[0], (Resident::kSteps - 2) * 16 * 1024);
  // Resident memory says it later: holes in pages that are there anyway are filled first.
  EXPECT_GE(hoarder.anonymous.back() - hoarder.anonymous[0], 2048);
}

}  // namespace
}  // namespace tessera
