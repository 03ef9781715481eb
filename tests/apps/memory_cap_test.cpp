/// --memory-cap in the commands: what is chosen runs, is verified, and is kept by a run that goes
/// on.

#include <nlohmann/json.hpp>

#include "apps/command_test.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr const char* kSmallModel = "--preset gpt2-tiny --layers 2 --threads 1 --vocab-size 64 ";

Json plan_json(const std::string& flags) {
  const Ran ran = run(words(text("plan --json ", kSmallModel, flags)));
  EXPECT_EQ(ran.code, 0) << ran.err;
  return Json::parse(ran.out);
}

std::int64_t peak(const Json& told) { return told["planned_peak_bytes"]; }

void expect_same_choice(const Json& one, const Json& other) {
  for (const char* key : {"planned_peak_bytes", "recompute_granularity", "recompute_layers",
                          "micro_batch_size", "offload"})
    EXPECT_EQ(one[key], other[key]) << key;
}

TEST(MemoryCap, PlansTellTheChoice) {
  const Json whole = plan_json("");
  EXPECT_EQ(whole["recompute_granularity"], "elementwise");
  EXPECT_EQ(whole["recompute_layers"], "all");
  EXPECT_EQ(whole["micro_batch_size"], 8);
  EXPECT_EQ(whole["offload"], Json::array());
  const Json told = plan_json(
      "--recompute-granularity full --recompute-layers 1 --remote-device cpu "
      "--micro-batch-size 4");
  EXPECT_EQ(told["recompute_granularity"], "full");
  EXPECT_EQ(told["recompute_layers"], "1");
  EXPECT_EQ(told["micro_batch_size"], 4);
  EXPECT_EQ(told["offload"], Json({"optimizer", "gradients"}));
  const Json capped = plan_json(text("--memory-cap ", peak(whole) * 2 / 3));
  EXPECT_LE(peak(capped), peak(whole) * 2 / 3);
  const std::string offload = join(capped["offload"].get<std::vector<std::string>>());
  EXPECT_TRUE(capped["micro_batch_size"] < 8 || capped["recompute_granularity"] != "elementwise" ||
              !offload.empty());
}

TEST(MemoryCap, IsRefusedWithTheFlagsAgainstIt) {
  const Ran ran = run(words(text("plan ", kSmallModel,
                                 "--memory-cap 1MB --micro-batch-size 8 --no-offload-optimizer "
                                 "--recompute-granularity none")));
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("your flags prevent less: --recompute-granularity none, "
                         "--micro-batch-size 8; without them the plan takes "),
            std::string::npos)
      << ran.err;
  const Ran layers = run(words(text("plan ", kSmallModel,
                                    "--memory-cap 1GB --recompute-layers 0 "
                                    "--recompute-granularity none")));
  EXPECT_EQ(layers.code, 2) << "a cap may not choose a granularity that was told";
  EXPECT_EQ(run(words(text("plan ", kSmallModel, "--memory-cap 1GB --recompute-layers 0"))).code,
            0);
}

/// config.toml has the choice, so a run goes on with the same plan, whether or not the cap is told.
TEST(MemoryCap, ARunGoesOnWithItsChoice) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Json whole = plan_json("--no-eval-at-end");
  const std::string flags =
      text("train ", kSmallModel, "--data @/text.txt --no-eval-at-end --output @/run --steps 2");
  const Ran first = run(words(folder.expand(text(flags, " --memory-cap ", peak(whole) * 2 / 3))));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("searching at most"), std::string::npos) << first.err;
  const Json summary = Json::parse(read(folder / "run/summary.json"));
  EXPECT_LE(peak(summary), peak(whole) * 2 / 3);
  EXPECT_EQ(peak(summary), summary["measured_peak_bytes"]);
  int steps = 2;
  for (const std::string cap : {"--memory-cap none", ""}) {
    const Ran again = run(words(folder.expand(
        text("train --config @/run/config.toml --resume auto --steps ", ++steps, " ", cap))));
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.err.find("searching at most"), std::string::npos) << again.err;
    expect_same_choice(Json::parse(read(folder / "run/summary.json")), summary);
  }
}

TEST(MemoryCap, VerifyRunsTheChoice) {
  const Json whole = plan_json("--devices 2");
  const std::string verify = text("verify ", kSmallModel, "--devices 2 --steps 1 --memory-cap ");
  const Ran ran = run(words(text(verify, peak(whole) * 9 / 10)));
  EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
  EXPECT_NE(ran.err.find(" planned with --recompute-granularity "), std::string::npos) << ran.err;
  const Ran hopeless = run(words(text(verify, "10kB")));
  EXPECT_EQ(hopeless.code, 2);
  EXPECT_NE(hopeless.err.find("memory-cap 10kB (10000 bytes) is below"), std::string::npos);
}

}  // namespace
}  // namespace tessera
