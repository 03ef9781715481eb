/// The memory cap: what is chosen fits, costs least, takes nothing back, and computes the same.

#include "tessera/train/fit_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/config/memory_cap.h"
#include "tessera/config/presets.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/memory_price.h"
#include "tessera/train/within_cap.h"

namespace tessera {
namespace {

/// A complete run without a cap.
RunConfig uncapped(std::int64_t layers = 4) {
  RunConfig out;
  find_preset("gpt2-tiny").apply(out);
  out.model.vocabulary = 61;
  out.model.layers = layers;
  out.threads = 1;
  return out;
}

RunConfig completed(RunConfig config) {
  complete(config);
  return config;
}

std::unique_ptr<Device> one_thread() { return make_cpu_device({1, -1}); }

RunRequirements facts_of_bytes(std::int64_t device, std::int64_t host) {
  RunRequirements out;
  out.peak_bytes = device, out.host_bytes = host, out.both_bytes = device + host;
  return out;
}

/// The message of the refusal; empty: it was none.
std::string cap_refusal(RunConfig config, std::int64_t cap, Device& device) {
  config.memory_cap = text(cap);
  try {
    fit_memory(config, device);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    return error.what();
  }
}

TEST(MemoryCap, IsReadInUnits) {
  EXPECT_EQ(parse_memory_cap("none"), std::nullopt);
  EXPECT_EQ(parse_memory_cap("10GiB"), std::int64_t{10} << 30);
  EXPECT_EQ(parse_memory_cap("8GB"), 8'000'000'000);
  EXPECT_EQ(parse_memory_cap("1.5kB"), 1500);
  EXPECT_EQ(parse_memory_cap("123"), 123);
  for (const char* wrong : {"", "GB", "-1GB", "0", "1 GB", "1gb", "1GBs", "nan", "inf", "1e30"})
    EXPECT_THROW(parse_memory_cap(wrong), Error) << wrong;
}

/// From a cap that changes nothing down to one that nothing meets.
TEST(MemoryCap, WhatIsChosenFits) {
  const std::unique_ptr<Device> device = one_thread();
  for (const std::int64_t stages : {1, 2}) {
    RunConfig asked = uncapped(2);
    asked.parallel.devices = asked.parallel.pipeline = stages;
    asked.micro_batch_size = 4;
    complete(asked);
    const std::int64_t whole = memory_price(asked, *device).peak_bytes;
    std::int64_t met = 0;
    for (const std::int64_t percent : {100, 90, 75, 15, 1}) {
      RunConfig config = asked;
      const std::int64_t cap = whole * percent / 100;
      config.memory_cap = text(cap);
      std::vector<std::string> notices;
      try {
        const std::string told =
            fit_memory(config, *device, [&](const std::string& line) { notices.push_back(line); });
        EXPECT_EQ(told.empty(), percent == 100) << told;
        EXPECT_EQ(notices.size(), percent == 100 ? 0 : 1);
        const MemoryPrice price = memory_price(config, *device);
        EXPECT_LE(price.peak_bytes, cap) << told;
        EXPECT_NO_THROW(require_within_cap(config, facts_of_bytes(price.peak_bytes, 0)));
        EXPECT_EQ(fit_memory(config, *device), "") << "chosen once, it fits";
        RunConfig again = asked;
        set_memory_choice(again, memory_choice_of(config));
        EXPECT_EQ(memory_choice_of(completed(again)), memory_choice_of(config));
        ++met;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::Usage);
        EXPECT_NE(std::string(error.what()).find("the least of all plans tried"), std::string::npos)
            << error.what();
      }
    }
    EXPECT_GT(met, 2);
    EXPECT_LT(met, 5);
  }
}

/// All choices of a space, with what they take.
struct Priced {
  MemoryChoice choice;
  MemoryPrice price;
};

std::vector<Priced> all_priced(const RunConfig& config, Device& device) {
  const MemorySpace space = memory_space_of(config);
  std::vector<Priced> out;
  for (const Recompute what : space.recompute) {
    const bool some = what != space.recompute[0] && space.layers > 0;
    for (std::int64_t n = 1; n <= (some ? space.layers : 1); ++n) {
      for (const std::int64_t size : space.sizes) {
        for (const OffloadStrategy& offload : space.offload) {
          MemoryChoice choice{what, space.asked.layers, size, offload};
          if (some && n < space.layers) choice.layers = n == 1 ? "0" : text("0-", n - 1);
          RunConfig candidate = config;
          set_memory_choice(candidate, choice);
          complete(candidate);
          out.push_back({choice, memory_price(candidate, device)});
        }
      }
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(out.size()), space.size());
  return out;
}

/// Every choice is compiled; none that fits may be cheaper than what the search takes. Where a
/// pipeline is cut depends on what is recomputed, so there prices do not only rise with it: the
/// search may miss a little.
TEST(MemoryCap, CostsLeastOfAll) {
  const std::unique_ptr<Device> device = one_thread();
  for (const std::string mesh : {"one device", "two stages", "ZeRO-3"}) {
    RunConfig asked = uncapped(2);
    asked.held_out = 0;  // validation takes less than training
    asked.global_batch_size = 4;
    if (mesh != "one device") asked.parallel.devices = 2;
    if (mesh == "two stages") asked.parallel.pipeline = 2, asked.micro_batch_size = 2;
    asked.zero3 = mesh == "ZeRO-3";
    complete(asked);
    const std::vector<Priced> all = all_priced(asked, *device);
    const auto peaks =
        std::ranges::minmax(all, {}, [](const Priced& p) { return p.price.peak_bytes; });
    const std::int64_t lowest = peaks.min.price.peak_bytes,
                       whole = memory_price(asked, *device).peak_bytes;
    bool some_layers = false;
    for (int i = 0; i <= 3; ++i) {
      const std::int64_t cap = lowest + (whole - 1 - lowest) * i / 3;
      SCOPED_TRACE(text(mesh, ", cap ", cap, " of ", lowest, " to ", whole));
      const Priced* best = nullptr;
      for (const Priced& each : all) {
        if (each.price.peak_bytes <= cap &&
            (best == nullptr || each.price.seconds < best->price.seconds))
          best = &each;
      }
      RunConfig config = asked;
      config.memory_cap = text(cap);
      fit_memory(config, *device);
      const MemoryPrice price = memory_price(config, *device);
      EXPECT_LE(price.peak_bytes, cap);
      EXPECT_LE(price.seconds, best->price.seconds * (mesh == "two stages" ? 1.05 : 1 + 1e-12))
          << flags_text(memory_choice_of(config)) << " where " << flags_text(best->choice)
          << " is cheaper";
      some_layers = some_layers || config.parallel.recompute_layers != "all";
    }
    EXPECT_NE(cap_refusal(asked, lowest - 1, *device).find(text("(", lowest, " bytes), the least")),
              std::string::npos)
        << cap_refusal(asked, lowest - 1, *device);
    EXPECT_TRUE(some_layers || mesh != "one device");
  }
}

/// What was told stays, though anything else would be cheaper or take less.
TEST(MemoryCap, TakesNothingBack) {
  const std::unique_ptr<Device> device = one_thread();
  RunConfig raised = uncapped();
  raised.parallel.machine.kernels = KernelSource::Described;  // its host has other memory
  raised.checkpoint_activations = raised.offload_parameters = true;
  raised.micro_batch_size = 2;
  complete(raised);
  const std::int64_t peak = memory_price(raised, *device).peak_bytes;
  raised.memory_cap = text(peak - 1);
  EXPECT_NE(fit_memory(raised, *device), "");
  EXPECT_EQ(raised.parallel.recompute, Recompute::Full);
  EXPECT_TRUE(raised.parallel.offload.parameters);
  EXPECT_LE(raised.micro_batch_size, 2);

  RunConfig asked = uncapped();
  asked.parallel.machine.kernels = KernelSource::Described;
  asked.micro_batch_size = 4;
  asked.recompute_granularity = "none";
  asked.given = {{"micro-batch-size", "--micro-batch-size 4"},
                 {"recompute-granularity", "--recompute-granularity none"},
                 {"offload-optimizer", "--no-offload-optimizer"}};
  complete(asked);
  const std::int64_t whole = memory_price(asked, *device).peak_bytes;
  RunConfig fitted = asked;
  fitted.memory_cap = text(whole - 1);
  EXPECT_NE(fit_memory(fitted, *device), "");
  EXPECT_EQ(fitted.micro_batch_size, 4);
  EXPECT_EQ(fitted.parallel.recompute, Recompute::None);
  EXPECT_FALSE(fitted.parallel.offload.moments);
  // Less is possible, but not with these.
  RunConfig free = asked;
  free.given.clear();
  free.memory_cap = text(whole / 4);
  EXPECT_NE(fit_memory(free, *device), "");
  const std::string told = cap_refusal(asked, whole / 4, *device);
  EXPECT_NE(told.find("your flags prevent less: --recompute-granularity none, "
                      "--micro-batch-size 4, --no-offload-optimizer; without them the plan takes "),
            std::string::npos)
      << told;
}

/// Layers that were told are those that are computed again; the cap says how.
TEST(MemoryCap, ChoosesTheGranularityForLayersThatWereTold) {
  const std::unique_ptr<Device> device = one_thread();
  RunConfig asked = uncapped();
  asked.parallel.recompute_layers = "1-3";
  asked.memory_cap = "1GB";
  asked.given = {{"recompute-layers", "--recompute-layers 1-3"},
                 {"micro-batch-size", "--micro-batch-size 8"}};
  for (const OffloadKind& kind : kOffloadKinds) asked.given[std::string(kind.field)] = "no";
  complete(asked);
  Problems problems;
  find_problems(asked, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(fit_memory(asked, *device), "") << "nothing has to be done";
  asked.memory_cap = text(memory_price(asked, *device).peak_bytes * 9 / 10);
  EXPECT_NE(fit_memory(asked, *device), "");
  EXPECT_GT(asked.parallel.recompute, Recompute::Elementwise);
  EXPECT_EQ(asked.parallel.recompute_layers, "1-3");
}

/// Halves where they divide, and 1.
TEST(MemoryCap, TriesFewSizesOfMicroBatches) {
  const auto sizes = [](std::int64_t batch, std::int64_t micro, std::int64_t devices) {
    RunConfig config = uncapped();
    config.global_batch_size = batch;
    config.micro_batch_size = micro;
    config.parallel.devices = devices;
    return memory_space_of(completed(config)).sizes;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(sizes(8, 0, 1), (Sizes{8, 4, 2, 1}));
  EXPECT_EQ(sizes(720, 0, 1), (Sizes{720, 360, 180, 90, 45, 20, 10, 5, 2, 1}));
  EXPECT_EQ(sizes(720, 60, 4), (Sizes{60, 30, 15, 6, 3, 1}));
  EXPECT_EQ(sizes(20'000'003, 0, 1), (Sizes{20'000'003, 1}));
  EXPECT_EQ(sizes(7, 0, 2), (Sizes{4})) << "unequal shares are computed at once";
}

/// As the flags and the file say it.
TEST(MemoryCap, KnowsWhatWasAskedFor) {
  Problems problems;
  std::vector<std::string> notices;
  const RunConfig config =
      configure({{"micro-batch-size", {"2"}, "micro-batch-size in a.toml:1"},
                 {"offload-gradients", {"false"}, "offload-gradients in a.toml:2"},
                 {"recompute-layers", {"0"}, "recompute-layers in a.toml:3"}},
                {{"no-offload-optimizer", {"true"}, "--no-offload-optimizer"},
                 {"recompute-layers", {"1"}, "--recompute-layers"}},
                problems, notices);
  EXPECT_EQ(config.given, (std::map<std::string, std::string, std::less<>>{
                              {"micro-batch-size", "micro-batch-size 2 in a.toml:1"},
                              {"offload-optimizer", "--no-offload-optimizer"},
                              {"recompute-layers", "--recompute-layers 1"}}));
}

/// Where host and device are one memory, no plan under a cap takes more than one without.
TEST(MemoryCap, OnACpuOffloadsToFilesAlone) {
  const std::unique_ptr<Device> device = one_thread();
  RunConfig asked = uncapped(2);
  complete(asked);
  EXPECT_EQ(memory_space_of(asked).offload.size(), 1);
  const MemoryPrice whole = memory_price(asked, *device);
  RunConfig capped = asked;
  capped.memory_cap = text(whole.peak_bytes * 8 / 10);
  EXPECT_NE(fit_memory(capped, *device), "");
  const MemoryPrice less = memory_price(capped, *device);
  EXPECT_EQ(less.host_bytes, 0);
  EXPECT_LE(less.peak_bytes, whole.peak_bytes * 8 / 10);

  RunConfig told = asked;  // counted where a user asks for it
  told.offload_optimizer = true;
  complete(told);
  const MemoryPrice both = memory_price(told, *device);
  EXPECT_GT(both.host_bytes, 0);
  EXPECT_EQ(both.capped_bytes, both.peak_bytes + both.host_bytes);

  RunConfig file = asked;
  file.remote_device = kRemoteFile;
  complete(file);
  EXPECT_EQ(memory_space_of(file).offload.size(), 4) << "two kinds are offloaded already";
  EXPECT_EQ(host_use(file, 7).file, 7);
  EXPECT_EQ(host_use(file, 7).memory, 0);
  const std::string refused = cap_refusal(asked, whole.peak_bytes / 20, *device);
  EXPECT_NE(refused.find("--remote-device nvme --offload-folder FOLDER keeps states in a file"),
            std::string::npos)
      << refused;
}

/// A plan with more than the cap is not run.
TEST(MemoryCap, HoldsForThePlanThatRuns) {
  RunConfig config = uncapped();
  const auto take = [&](std::int64_t device, std::int64_t host) {
    require_within_cap(config, facts_of_bytes(device, host));
  };
  EXPECT_NO_THROW(take(1001, 0));
  config.memory_cap = "1kB";
  EXPECT_NO_THROW(take(1000, 0));
  EXPECT_THROW(take(1001, 0), Error);
  EXPECT_THROW(take(900, 101), Error) << "on a CPU, both are in one memory";
  EXPECT_NO_THROW(take(900, 100));
  config.remote_device = kRemoteFile;
  EXPECT_NO_THROW(take(900, 5000)) << "a file takes no memory";
  config.remote_device = kRemoteMemory;
  config.parallel.machine.kernels = KernelSource::Described;
  EXPECT_NO_THROW(take(900, 5000)) << "the host has memory of its own";
}

/// The samples of a step alone are too many: no plan of 20 million micro-batches is made.
TEST(MemoryCap, RefusesAHugeBatchAtOnce) {
  RunConfig config = uncapped();
  config.global_batch_size = 20'000'003;
  complete(config);
  const std::string told = cap_refusal(config, std::int64_t{1} << 30, *one_thread());
  EXPECT_NE(told.find("which the samples of a step take on a device"), std::string::npos) << told;
}

}  // namespace
}  // namespace tessera
