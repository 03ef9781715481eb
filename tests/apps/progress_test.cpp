#include "tessera/apps/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "tessera/base/text.h"

namespace tessera {
namespace {

StepRecord step(std::int64_t number) {
  return {.step = number, .loss = 2.5, .lr = 1e-3, .grad_norm = 1.25, .seconds = 0.5};
}

RunStart start() {
  RunStart out;
  out.steps = 100;
  out.tokens_per_step = 768;
  out.flops_per_step = 4e9;
  out.devices = 2;
  out.product_flops_per_s = 10e9;
  return out;
}

TEST(Progress, PlainLinesForTheFirstTheLastAndEveryTenthStep) {
  std::ostringstream out;
  Console console{out, out, false, 80};
  Progress progress(console, 10);
  progress.on_start(start());
  out.str("");
  for (const std::int64_t number : {1, 2, 20, 55, 100}) progress.on_step(step(number));
  progress.on_valid(100, 1.5, {});
  progress.finish();
  EXPECT_EQ(
      out.str(),
      "step 1/100  loss 2.5000  grad norm 1.25  1,536 tokens/s  500 ms/step  MFU 40%  0:50 left\n"
      "step 20/100  loss 2.5000  grad norm 1.25  1,536 tokens/s  500 ms/step  MFU 40%  0:40 left\n"
      "step 100/100  loss 2.5000  grad norm 1.25  1,536 tokens/s  500 ms/step  MFU 40%  0:00 left\n"
      "step 100  validation loss 1.5000\n");
}

/// 4 GFLOP in half a second on two devices, beside the rate that was measured of each.
TEST(Progress, WithoutAnIntervalThereAreAtMost40LinesOfSteps) {
  for (const std::int64_t first : {0, 7})
    for (const std::int64_t steps : {380, 381, 400, 401, 760, 2000, 12345}) {
      std::ostringstream out;
      Console console{out, out, false, 80};
      Progress progress(console, 0);
      RunStart run = start();
      run.first_step = first, run.steps = first + steps;
      progress.on_start(run);
      out.str("");
      for (std::int64_t k = first + 1; k <= run.steps; ++k) progress.on_step(step(k));
      const std::string lines = out.str();
      EXPECT_LE(std::ranges::count(lines, '\n'), 40) << first << ", " << steps;
      EXPECT_GE(std::ranges::count(lines, '\n'), 20) << first << ", " << steps;
    }
}

TEST(Progress, NoUtilizationIsAbove100Percent) {
  for (const auto& [rate, shown] :
       {std::pair{4.0e9, "MFU 100%"}, {3.9e9, "MFU -"}, {1e3, "MFU -"}}) {
    std::ostringstream out;
    Console console{out, out, false, 80};
    Progress progress(console, 10);
    RunStart measured = start();
    measured.product_flops_per_s = rate;
    progress.on_start(measured);
    progress.on_step(step(1));
    EXPECT_NE(out.str().find(text("500 ms/step  ", shown, "  0:50 left")), std::string::npos)
        << rate << "\n"
        << out.str();
  }
}

/// A run of millions of steps of a slow model: what matters least goes.
TEST(Progress, LinesHaveAtMost100Columns) {
  std::ostringstream out;
  Console console{out, out, false, 80};
  Progress progress(console, 1);
  RunStart long_run = start();
  long_run.steps = 100'000'000;
  long_run.tokens_per_step = 40'000'000;
  progress.on_start(long_run);
  out.str("");
  StepRecord record = step(1);
  record.seconds = 12.5;
  progress.on_step(record);
  EXPECT_LE(out.str().size(), 101u) << out.str();
  for (const char* part : {"step 1/100000000  loss ", "tokens/s", "MFU ", " left\n"})
    EXPECT_NE(out.str().find(part), std::string::npos) << out.str();
}

TEST(Progress, WhatIsNoNumberHasNoSign) {
  std::ostringstream out;
  Console console{out, out, false, 80};
  Progress progress(console, 10);
  progress.on_start(start());
  out.str("");
  StepRecord record = step(1);
  record.loss = -std::numeric_limits<double>::quiet_NaN();
  progress.on_step(record);
  progress.on_valid(1, record.loss, {});
  EXPECT_NE(out.str().find("loss nan "), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("validation loss nan"), std::string::npos) << out.str();
  EXPECT_EQ(text("loss ", record.loss), "loss nan");
}

TEST(Progress, TheMemoryOfARun) {
  std::ostringstream out;
  Console console{out, out, false, 80};
  Progress(console, 10).on_memory({3 << 20, 2 << 20, {.program = 1 << 20, .text = 8, .plan = 512}});
  EXPECT_EQ(out.str(),
            "memory: 2.00 MiB of 3.00 MiB on huge pages; outside it 1.00 MiB of program, 8 B of "
            "text, 512 B of plan and kernels\n");
}

TEST(Progress, ABarThatFitsTheTerminal) {
  for (const int columns : {20, 80, 200}) {
    std::ostringstream out;
    Console console{out, out, true, columns};
    Progress progress(console, 10);
    progress.on_start(start());
    out.str("");
    progress.on_step(step(100));
    std::string shown = out.str();
    EXPECT_EQ(shown.substr(0, 4), "\r\x1b[K") << "written over the last";
    EXPECT_LT(shown.size(), static_cast<std::size_t>(columns) + 4);
    EXPECT_EQ(shown.find('=') != std::string::npos, columns > 20);
    EXPECT_EQ(shown.find("left") != std::string::npos, columns > 20);
    out.str("");
    progress.on_valid(100, 1.5, {});
    EXPECT_EQ(out.str(), "\nstep 100  validation loss 1.5000\n") << "lines begin below the bar";
  }
}

}  // namespace
}  // namespace tessera
