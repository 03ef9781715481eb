/// What --profile records of a run: every call of the plan in every recorded step, at its cost.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tessera/config/presets.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/programs.h"
#include "tessera/train/trainer.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ProfileTest : public testing::Test, public TrainCallback {
 protected:
  ProfileTest() {
    std::string name = testing::TempDir() + "tessera-profile-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::ofstream text(folder_ + "/text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i * 7919 % 1000 << (i % 5 == 0 ? '\n' : ' ');
  }
  ~ProfileTest() override { fs::remove_all(folder_); }

  void on_profile(const std::string& path, const std::string& table) override {
    path_ = path;
    table_ = table;
  }
  void on_notice(const std::string& notice) override { notices_ += notice + "\n"; }

  RunConfig config() const {
    RunConfig out;
    find_preset("gpt2-tiny").apply(out);
    out.model.layers = 2;
    out.data = {folder_ + "/text.txt"};
    out.output = folder_ + "/run";
    out.steps = 8;
    out.micro_batch_size = out.global_batch_size / 2;
    out.profile = folder_ + "/trace.json";
    return out;
  }

  /// Trains; returns the configuration as it was completed.
  RunConfig run(const RunConfig& config) {
    Problems problems;
    std::optional<PreparedRun> prepared = prepare_run(config, problems);
    problems.raise();
    RunConfig out = prepared->config;
    train(std::move(*prepared), CpuBackend(*device_), {{this}});
    return out;
  }

  std::string folder_, path_, table_, notices_;
  std::unique_ptr<Device> device_ = make_cpu_device({2, -1});
};

/// Floating point operations of the products of a step: two for each weight and token forward, four
/// backward.
double product_flops(const ModelConfig& model, std::int64_t tokens) {
  const double width = static_cast<double>(model.width);
  const double ffn = model.ffn_width > 0 ? static_cast<double>(model.ffn_width) : 4 * width;
  const double of_layer = 3 * width * width + width * width + 2 * width * ffn;
  const double weights =
      static_cast<double>(model.layers) * of_layer + width * static_cast<double>(model.vocabulary);
  return 6 * weights * static_cast<double>(tokens);
}

TEST_F(ProfileTest, HasEveryCallOfEveryRecordedStep) {
  const RunConfig c = run(config());
  EXPECT_EQ(path_, c.profile);
  const Json trace = Json::parse(std::ifstream(c.profile));
  const Executor executor(compile_programs(RunSetup(c), {true, false, false}, *device_).plan,
                          *device_);

  std::vector<std::pair<double, double>> steps, kernels;  // begin and end in microseconds
  std::map<std::string, int> times_of;
  double products = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
    if (event.at("cat") == "step") {
      EXPECT_EQ(event.at("name"), text("step ", steps.size() + 3)) << "after two that warm up";
      steps.emplace_back(begin, end);
      continue;
    }
    kernels.emplace_back(begin, end);
    const Json& args = event.at("args");
    ++times_of[args.dump()];
    EXPECT_GT(args.at("bytes"), 0) << args;
    EXPECT_NE(args.at("shapes").get<std::string>().find("->"), std::string::npos);
    if (args.at("op") == "matmul") products += args.at("GFLOP").get<double>() * 1e9;
  }
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(kernels.size(), 3 * executor.calls_of_run(kTrainProgram));
  for (const auto& [args, times] : times_of) EXPECT_EQ(times % 3, 0) << args;
  const double wanted = 3 * product_flops(c.model, c.global_batch_size * c.model.context);
  EXPECT_NEAR(products, wanted, 1e-9 * wanted);

  double in_steps = 0, in_kernels = 0;
  for (const auto& [begin, end] : steps) in_steps += end - begin;
  std::size_t step = 0;
  double before = 0;
  constexpr double kRounded = 2e-3;  // the file has nanoseconds
  for (const auto& [begin, end] : kernels) {
    if (step + 1 < steps.size() && begin >= steps[step].second) ++step;
    EXPECT_GE(begin, std::max(before, steps[step].first) - kRounded) << "one after the other";
    EXPECT_LE(end, steps[step].second + kRounded);
    in_kernels += end - begin;
    before = end;
  }
  EXPECT_LE(in_kernels, in_steps);
  // On an idle machine nearly all; on a busy one others run between two calls as well.
  EXPECT_GE(in_kernels, 0.2 * in_steps);
}

TEST_F(ProfileTest, CopiesAreStartedAndWaitedFor) {
  RunConfig c = config();
  c.offload_optimizer = true;
  c = run(c);
  std::map<std::string, int> parts;
  const Json trace = Json::parse(std::ifstream(c.profile));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("cat") == "step") continue;
    const std::string name = event.at("name");
    if (event.at("args").at("op") != "copy") continue;
    ++parts[name];
    EXPECT_EQ(event.at("args").at("bytes") > 0, name == "wait copy") << "most are moved meanwhile";
  }
  EXPECT_GT(parts["start copy"], 0);
  EXPECT_EQ(parts["start copy"], parts["wait copy"]);
  EXPECT_EQ(parts.size(), 2u);
}

TEST_F(ProfileTest, TheFileHasTheTable) {
  const RunConfig c = run(config());
  const Json profile = Json::parse(std::ifstream(c.profile)).at("profile");
  double seconds = profile.at("seconds_in_no_kernel");
  std::size_t calls = 0;
  for (const Json& row : profile.at("kernels")) {
    seconds += row.at("seconds").get<double>();
    calls += row.at("calls").get<std::size_t>();
    EXPECT_GT(row.at("floor_seconds"), 0) << row;
  }
  EXPECT_NEAR(seconds, profile.at("step_seconds"), 1e-9);
  const Executor executor(compile_programs(RunSetup(c), {true, false, false}, *device_).plan,
                          *device_);
  EXPECT_EQ(calls, executor.calls_of_run(kTrainProgram));
  EXPECT_NE(table_.find("profile of steps 3 to 5 on cpu x 2"), std::string::npos) << table_;
  double shares = 0;
  for (const std::string& line : split(table_, '\n')) {
    const std::size_t percent = line.find('%');
    if (percent != std::string::npos && line.find("  the step") == std::string::npos &&
        line[0] == ' ')
      shares += std::stod(line.substr(percent - 6, 6));
  }
  EXPECT_NEAR(shares, 100, 0.3) << table_;  // each is rounded to 0.01
}

TEST_F(ProfileTest, RecordingAllocatesNothing) {
  RunConfig c = config();
  complete(c);
  c.model.vocabulary = 19;
  Executor executor(compile_programs(RunSetup(c), {true, false, false}, *device_).plan, *device_);
  executor.run(kInitProgram);
  const auto fill = [](BatchInputs& batch) {
    for (const char* name : {"ids", "labels"}) std::ranges::fill(batch.fill<std::int32_t>(name), 0);
  };
  std::vector<CallTime> times;
  times.reserve(executor.calls_of_run(kTrainProgram));
  const CallTime* const at = times.data();
  const std::size_t room = times.capacity();
  executor.run(kTrainProgram, fill, {.times = &times});
  EXPECT_EQ(times.data(), at);
  EXPECT_EQ(times.size(), room) << "as many as were announced";
  // An accumulation has a call for the first micro-batch and one for the second.
  std::map<std::pair<const Call*, RegionKind>, int> runs;
  for (const CallTime& time : times) ++runs[{time.call, time.action.region}];
  for (const auto& [of, count] : runs) {
    const auto& [call, region] = of;
    const bool in_loop = region == RegionKind::Forward || region == RegionKind::Backward;
    EXPECT_EQ(count, in_loop && call->when == When::Always ? 2 : 1) << op_text(*call);
  }
}

TEST_F(ProfileTest, RecordsFewerStepsThanAskedForWhereTheRunEnds) {
  RunConfig c = config();
  c.steps = 4;
  run(c);
  EXPECT_NE(table_.find("profile of steps 3 to 4 "), std::string::npos) << table_;
}

TEST_F(ProfileTest, ARunThatOnlyWarmsUpSaysSo) {
  RunConfig c = config();
  c.steps = 2;
  run(c);
  EXPECT_EQ(table_, "");
  EXPECT_FALSE(fs::exists(c.profile));
  EXPECT_NE(notices_.find("no profile: it records steps after 2 for warm-up, but only 2 ran"),
            std::string::npos)
      << notices_;
}

TEST_F(ProfileTest, AFileThatCannotBeWrittenIsToldBeforeAnyStep) {
  RunConfig c = config();
  c.profile = folder_ + "/missing/trace.json";
  try {
    run(c);
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Resource);
    EXPECT_NE(std::string(error.what()).find("missing/trace.json"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(c.output + "/metrics.jsonl"));
}

}  // namespace
}  // namespace tessera
