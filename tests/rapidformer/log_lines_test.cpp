/// Lines as Megatron-LM prints them.

#include "tessera/rapidformer/log_lines.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace tessera {
namespace {

struct Printed {
  std::ostringstream out, err;
  Console console{out, err};
  std::string take() {
    std::string text = out.str();
    out.str("");
    return text;
  }
};

RunConfig every(std::int64_t interval) {
  RunConfig config;
  config.log_every = interval;
  config.global_batch_size = 8;
  config.micro_batch_size = 8;
  return config;
}

void begin(LogLines& lines, std::int64_t steps) {
  RunStart start;
  start.steps = steps;
  lines.on_start(start);
}

TEST(LogLines, IterationsAsMegatronPrintsThem) {
  Printed printed;
  LogLines lines(printed.console, every(2));
  begin(lines, 3);
  printed.take();
  lines.on_step({.step = 1, .loss = 10, .lr = 0, .grad_norm = 1, .seconds = 0.010});
  EXPECT_EQ(printed.take(), "");
  lines.on_step({.step = 2, .loss = 11, .lr = 1e-3, .grad_norm = 2.5, .seconds = 0.0146});
  EXPECT_EQ(printed.take(),
            " iteration        2/       3 | consumed samples:           16 | elapsed time per "
            "iteration (ms): 12.3 | learning rate: 1.000E-03 | global batch size:     8 | lm loss: "
            "1.050000E+01 | loss scale: 1.0 | grad norm: 2.500 | number of skipped iterations:   0 "
            "| number of nan iterations:   0 |\n");
  // The last one has a line, too; a loss that is none is no part of a mean.
  lines.on_step({.step = 3,
                 .loss = std::numeric_limits<double>::quiet_NaN(),
                 .lr = 1e-3,
                 .ok = false,
                 .seconds = 0.01,
                 .loss_scale = 512});
  EXPECT_EQ(printed.take(),
            " iteration        3/       3 | consumed samples:           24 | elapsed time per "
            "iteration (ms): 10.0 | learning rate: 1.000E-03 | global batch size:     8 | loss "
            "scale: 512.0 | grad norm: 0.000 | number of skipped iterations:   1 | number of nan "
            "iterations:   1 |\n");
}

/// A run that ends before its last iteration, as with --exit-interval.
TEST(LogLines, TheEndHasALineOfWhatFillsNoInterval) {
  Printed printed;
  LogLines lines(printed.console, every(2));
  for (std::int64_t step = 1; step <= 3; ++step) lines.on_step({.step = step, .loss = 10});
  printed.take();
  lines.finish();
  EXPECT_TRUE(printed.take().starts_with(" iteration        3/"));
  lines.finish();
  EXPECT_EQ(printed.take(), "");
}

/// As of `tessera train`: 40 lines at most.
TEST(LogLines, WithoutAnIntervalItFollowsFromTheSteps) {
  Printed printed;
  LogLines lines(printed.console, every(0));
  begin(lines, 500);
  printed.take();
  lines.on_step({.step = 10, .loss = 10});
  EXPECT_EQ(printed.take(), "");
  lines.on_step({.step = 20, .loss = 10});
  EXPECT_TRUE(printed.take().starts_with(" iteration       20/"));
}

TEST(LogLines, LossesHaveMegatronsNames) {
  Printed printed;
  LogLines lines(printed.console, every(1));
  lines.on_step(
      {.step = 1, .loss = 11, .means = {{"mlm_loss", 10}, {"sop_loss", 1}, {"mlm_accuracy", 0.5}}});
  const std::string line = printed.take();
  EXPECT_NE(line.find(" | lm loss: 1.000000E+01 | sop loss: 1.000000E+00 | loss scale"),
            std::string::npos)
      << line;
  lines.on_valid(10, 2, {});
  const std::string rule(94, '-');
  EXPECT_EQ(printed.take(),
            rule +
                "\n validation loss at iteration 10 | lm loss value: 2.000000E+00 | "
                "lm loss PPL: 7.389056E+00 | \n" +
                rule + "\n");
  lines.on_eval({.epoch = 1, .step = 10, .loss = 0.5, .scores = {{"accuracy", 0.75}}});
  EXPECT_NE(printed.take().find(
                " evaluation after epoch 1 | loss: 5.000000E-01 | accuracy: 0.750000 | \n"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
