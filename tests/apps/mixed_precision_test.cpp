/// The command in 16 bits: what it trains, saves, resumes and refuses.

#include "apps/command_test.h"
#include "tessera/device/device.h"
#include "tessera/train/programs.h"

namespace tessera {
namespace {

constexpr const char* kTrain =
    "train --preset gpt2-tiny --layers 2 --data @/text.txt --threads 1 --eval-every 0 ";

class MixedPrecision : public testing::Test {
 protected:
  MixedPrecision() { folder_.write("text.txt", some_text()); }

  Ran train(const std::string& output, const std::string& flags) const {
    return run(words(folder_.expand(text(kTrain, "--output @/", output, " ", flags))));
  }
  std::string digest(const std::string& output) const {
    const Ran ran = run({"inspect", folder_ / output, "--digest"});
    EXPECT_EQ(ran.out.size(), 33u) << ran.err;
    return ran.out;
  }
  std::string metrics(const std::string& output) const {
    return read(folder_ / (output + "/metrics.jsonl"));
  }

  Folder folder_;
};

/// Copies are made again from what a checkpoint holds, so no bit is lost between two invocations.
TEST_F(MixedPrecision, GoesOnToTheSameBits) {
  for (const std::string flags : {"--bf16 ", "--fp16 --loss-scale-window 3 ",
                                  "--bf16 --reduce-dtype bf16 --micro-batch-size 2 ",
                                  "--bf16 --devices 2 --zero-3-memory-optimization "}) {
    SCOPED_TRACE(flags);
    ASSERT_EQ(train("whole", flags + "--steps 8").code, 0);
    ASSERT_EQ(train("parts", flags + "--steps 8 --exit-interval 5").code, 0);
    const Ran rest = train("parts", flags + "--steps 8 --resume auto");
    ASSERT_EQ(rest.code, 0) << rest.err;
    EXPECT_EQ(digest("whole"), digest("parts"));
    EXPECT_EQ(run({"sample", folder_ / "parts", "--prompt", "line", "--tokens", "40"}).code, 0);
    std::filesystem::remove_all(folder_ / "whole");
    std::filesystem::remove_all(folder_ / "parts");
  }
}

/// What is left to the run is compared as the run has it.
TEST_F(MixedPrecision, OtherSumsOfGradientsAreTold) {
  struct Row {
    const char *there, *here, *told;
  };
  for (const Row& row :
       {Row{"--fp16 --reduce-dtype f32", "--fp16", "reduce-dtype is f32 there and f16 here"},
        {"--fp16", "--fp16 --reduce-dtype f32", "reduce-dtype is f16 there and f32 here"},
        {"--fp16 --reduce-dtype f16", "--fp16", ""},
        {"--bf16 --reduce-dtype f32", "--bf16", ""},
        {"--bf16", "--bf16 --reduce-dtype bf16", "reduce-dtype is f32 there and bf16 here"}}) {
    SCOPED_TRACE(text(row.there, ", then ", row.here));
    ASSERT_EQ(train("run", text(row.there, " --steps 1")).code, 0);
    const Ran ran = train("run", text(row.here, " --steps 2 --resume auto"));
    EXPECT_EQ(ran.code, 0) << ran.err;
    const bool silent = *row.told == 0;
    const std::string_view sought = silent ? "reduce-dtype" : row.told;
    EXPECT_EQ((ran.out + ran.err).find(sought) == std::string::npos, silent) << ran.out << ran.err;
    std::filesystem::remove_all(folder_ / "run");
  }
}

/// It is said where 16 bits take no less time, and nowhere else.
TEST_F(MixedPrecision, TellsWhereNothingMultipliesItsFloats) {
  const Isa isa = machine_choices().isa;
  for (const auto& [flag, dtype] : {std::pair{"--bf16", DType::BF16}, {"--fp16", DType::F16}}) {
    const Ran ran = train(flag, text(flag, " --steps 1"));
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::string notice = text("notice: kernels of instruction set ", to_text(isa),
                                    " cannot multiply ", dtype, ", and convert it to f32 and back");
    EXPECT_EQ(ran.out.find(notice) == ran.out.npos, multiplies_16_bit(dtype, isa)) << ran.out;
  }
}

/// A checkpoint has f32 parameters, whatever computed them, and a loss scale where there is one.
TEST_F(MixedPrecision, AnyFloatsGoOnFromAnyOthers) {
  int step = 0;
  for (const std::string flags : {"", "--bf16", "--fp16 --initial-loss-scale 1024", "", "--fp16"}) {
    SCOPED_TRACE(text("step ", step, " ", flags));
    step += 3;
    const Ran ran = train("run", text(flags, " --steps ", step, step > 3 ? " --resume auto" : ""));
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::string inspected = run({"inspect", folder_ / "run"}).out;
    EXPECT_EQ(inspected.find("bf16"), std::string::npos) << inspected;
    EXPECT_EQ(inspected.find("loss_scale") != std::string::npos, flags.find("fp16") != flags.npos);
  }
  const std::string lines = metrics("run");
  EXPECT_NE(lines.find("\"loss_scale\":1024"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"loss_scale\":65536"), std::string::npos) << lines;
}

/// A scale that is too large falls until gradients are finite: that is no failure.
TEST_F(MixedPrecision, ALossScaleFindsItself) {
  const Ran ran = train("run", "--fp16 --steps 30 --initial-loss-scale 1e12 --hysteresis 1");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string lines = metrics("run");
  EXPECT_NE(lines.find("\"loss_scale\":9.99999996e+11"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"skipped\":true"), std::string::npos) << lines;
  EXPECT_EQ(lines.rfind("\"skipped\":true") < lines.rfind("\"step\":30"), true) << lines;
}

/// A run that ends before the scale fits says so, and its loss is of no skipped step.
TEST_F(MixedPrecision, SkippedStepsAtTheEndAreTold) {
  const Ran all = train("all", "--fp16 --steps 3 --initial-loss-scale 1e15");
  EXPECT_EQ(all.code, 0);
  EXPECT_NE(all.out.find("the last 3 steps, 1 to 3, were skipped and changed no parameter"),
            std::string::npos)
      << all.out;
  EXPECT_NE(all.out.find("done: step 3 of 3, training loss not known"), std::string::npos)
      << all.out;
  const Ran none = train("none", "--fp16 --reduce-dtype f32 --steps 3");
  EXPECT_EQ(none.out.find("skipped"), std::string::npos) << none.out;
}

/// At the smallest scale there is nothing left to try.
TEST_F(MixedPrecision, ThreeBadStepsAtTheSmallestScaleEndTheRun) {
  const Ran ran = train("run",
                        "--fp16 --steps 30 --initial-loss-scale 4e12 --min-loss-scale 1e12 "
                        "--hysteresis 1");
  EXPECT_EQ(ran.code, 6);
  EXPECT_NE(ran.err.find("the last 3 at loss scale 999999995904, the smallest"), std::string::npos)
      << ran.err;
  // Two steps above it: 4e12 and 2e12. Then three.
  EXPECT_NE(metrics("run").find("\"step\":5,"), std::string::npos);
  EXPECT_EQ(metrics("run").find("\"step\":6,"), std::string::npos);
}

/// A loss that is nan is so at any scale: a smaller one is not waited for.
TEST_F(MixedPrecision, ADivergedRunEndsWithItsCode) {
  for (const std::string floats : {"", "--fp16", "--bf16"}) {
    SCOPED_TRACE(floats);
    const Ran ran = train("run", floats + " --steps 20 --lr 1e6 --lr-warmup-steps 1");
    EXPECT_EQ(ran.code, 6) << ran.out;
    EXPECT_EQ(metrics("run").find("\"step\":10,"), std::string::npos);
    std::filesystem::remove_all(folder_ / "run");
  }
  // No step is left to be skipped: the last one's parameters are seen by validation alone.
  const Ran last = train("last", "--steps 2 --lr 1e30 --lr-warmup-steps 1");
  EXPECT_EQ(last.code, 6) << last.out;
  EXPECT_NE(last.err.find("the parameters after step 2 are unusable"), std::string::npos)
      << last.err;
}

/// Sums of gradients are f16 with --fp16 unless told otherwise. A scale at which nothing but such a
/// sum is above the largest f16 tells which they are.
TEST_F(MixedPrecision, SumsOfGradientsAreF16OnlyWithFp16) {
  const auto skipped = [&](const std::string& flags) {
    const Ran ran = train("run", flags + " --steps 1 --initial-loss-scale 1000000");
    EXPECT_EQ(ran.code, 0) << ran.err;
    std::filesystem::remove_all(folder_ / "run");
    return ran.out.find("step 1 was skipped") != ran.out.npos;
  };
  EXPECT_TRUE(skipped("--fp16"));
  EXPECT_TRUE(skipped("--fp16 --reduce-dtype f16"));
  EXPECT_FALSE(skipped("--fp16 --reduce-dtype f32"));

  RunConfig with_bf16;
  with_bf16.bf16 = true;
  EXPECT_EQ(precision_of(with_bf16)->sums, DType::F32);
}

TEST_F(MixedPrecision, MeshesAreVerified) {
  for (const std::string flags :
       {"--bf16 --devices 4 --tensor-model-parallel-size 2 --sequence-parallel",
        "--fp16 --devices 2 --zero-2-memory-optimization",
        "--bf16 --devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 2"}) {
    const Ran ran = run(words("verify --preset gpt2-tiny --layers 2 --steps 2 " + flags));
    EXPECT_EQ(ran.code, 0) << flags << "\n" << ran.out << ran.err;
    const bool scaled =
        ran.out.find(", and the loss scale, which begins at 65536)") != ran.out.npos;
    EXPECT_EQ(scaled, flags.starts_with("--fp16")) << ran.out;
  }
}

TEST_F(MixedPrecision, WhatContradictsIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"--bf16 --fp16", "--bf16 computes in bf16, but --fp16 in f16; give one"},
      {"--mixed-precision --fp16", "--mixed-precision computes in bf16, but --fp16 in f16"},
      {"--reduce-dtype bf16", "reduce-dtype bf16, but the run computes in f32"},
      {"--bf16 --reduce-dtype f16", "reduce-dtype f16, but the run computes in bf16"},
      {"--bf16 --reduce-dtype f64", "reduce-dtype is 'f64'; it can be auto, f32, bf16, f16"},
      {"--fp16 --initial-loss-scale 2 --min-loss-scale 4", "is below min-loss-scale 4"},
      {"--fp16 --loss-scale-window 0", "loss-scale-window"},
  };
  for (const auto& [flags, message] : rows) {
    const Ran ran = train("run", text(flags, " --steps 1"));
    EXPECT_EQ(ran.code, 2) << flags;
    EXPECT_NE(ran.err.find(message), std::string::npos) << flags << "\n" << ran.err;
  }
}

}  // namespace
}  // namespace tessera
