/// Medians, ratios and distances of contestants, and the lines that turns tell them by.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/bench/bench_report.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

Turn turn_of(std::vector<double> seconds, std::vector<double> losses = {2, 1}) {
  Turn out;
  out.step_seconds = std::move(seconds);
  out.losses = std::move(losses);
  out.tokens_per_step = 100;
  out.planned_bytes = 1 << 20;
  out.peak_bytes = 2 << 20;
  out.parameters = 12;
  out.kernels = {"hwy:matmul"};
  return out;
}

Turn failed(const std::string& why, bool planned_only = false) {
  Turn out;
  out.failure = why;
  out.planned_only = planned_only;
  out.planned_bytes = 3 << 20;
  return out;
}

TEST(Standing, RatiosAreThoseOfTurns) {
  // The second turn was slower for both: ratios of turns agree where those of medians would not.
  const std::vector<Standing> found = standings(
      {{"plain", "", 4, true, {turn_of({2, 2, 8}), turn_of({3, 3, 3}), turn_of({2, 2, 2})}},
       {"bf16", "--bf16", 4, true, {turn_of({1, 1, 1}), turn_of({1.5, 1.5, 1.5}), turn_of({1})}}});
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].step_seconds, 2);
  EXPECT_EQ(found[0].samples_per_s, 2);
  EXPECT_EQ(found[0].tokens_per_s, 50);
  EXPECT_EQ(found[0].step_range.low, 2);
  EXPECT_EQ(found[0].step_range.high, 8);
  EXPECT_EQ(found[0].ratio, 1);
  EXPECT_EQ(found[1].ratio, 2);
  EXPECT_EQ(found[1].ratio_range->low, 2);
  EXPECT_EQ(found[1].ratio_range->high, 2);
  EXPECT_EQ(found[1].memory_ratio, 1);
}

TEST(Standing, SpeedIsOfSamples) {
  const std::vector<Standing> found =
      standings({{"plain", "", 4, true, {turn_of({2})}}, {"larger", "", 12, true, {turn_of({3})}}});
  EXPECT_EQ(found[1].ratio, 2);
}

TEST(Standing, TurnsThatDisagreeGiveNoRatio) {
  const std::vector<Standing> found =
      standings({{"plain", "", 1, true, {turn_of({1}), turn_of({1})}},
                 {"near", "", 1, true, {turn_of({1}), turn_of({1.1})}},
                 {"far", "", 1, true, {turn_of({1}), turn_of({1.4})}}});
  EXPECT_TRUE(found[1].ratio.has_value());
  EXPECT_FALSE(found[1].disagrees);
  EXPECT_FALSE(found[2].ratio.has_value());
  EXPECT_TRUE(found[2].disagrees);
  EXPECT_NEAR(found[2].ratio_range->low, 1 / 1.4, 1e-12);
}

TEST(Standing, WhatFailedHasNoNumbers) {
  const std::vector<Standing> found = standings(
      {{"plain", "", 1, true, {turn_of({1})}}, {"broken", "", 1, true, {failed("no such file")}}});
  EXPECT_FALSE(found[1].step_seconds.has_value());
  EXPECT_FALSE(found[1].ratio.has_value());
  EXPECT_EQ(found[1].failure, "no such file");
  EXPECT_EQ(found[1].planned_bytes, 3 << 20);
  EXPECT_FALSE(found[1].distance.has_value());
  const std::vector<Standing> none = standings({{"plain", "", 1, true, {failed("too large", true)}},
                                                {"small", "", 1, true, {turn_of({1})}}});
  EXPECT_TRUE(none[0].planned_only);
  EXPECT_TRUE(none[1].step_seconds.has_value());
  EXPECT_FALSE(none[1].ratio.has_value());
}

TEST(Standing, DistancesOfLosses) {
  const std::vector<double> plain(20, 3.0);
  std::vector<double> other(20, 3.0);
  other[0] = 3.5, other[19] = 2.8;
  const std::vector<Standing> found = standings({{"plain", "", 1, true, {turn_of({1}, plain)}},
                                                 {"other", "", 1, true, {turn_of({1}, other)}},
                                                 {"shorter", "", 1, true, {turn_of({1}, {3})}}});
  EXPECT_EQ(found[0].distance->largest, 0);
  EXPECT_NEAR(found[1].distance->mean, 0.7 / 20, 1e-12);
  EXPECT_NEAR(found[1].distance->largest, 0.5, 1e-12);
  EXPECT_NEAR(found[1].distance->relative, 0.5 / 3, 1e-12);
  EXPECT_NEAR(found[1].distance->last, -0.1, 1e-12);
  EXPECT_FALSE(found[2].distance.has_value());
  const std::vector<Standing> unlike = standings({{"plain", "", 1, true, {turn_of({1}, plain)}},
                                                  {"seed", "", 1, false, {turn_of({1}, other)}}});
  EXPECT_FALSE(unlike[1].distance.has_value()) << "of other samples";
}

TEST(Standing, MfuIsOfThePeaksOfAllDevices) {
  Turn ours = turn_of({0.5}), peer = turn_of({0.25}), twice = turn_of({0.5});
  ours.model_flops = 6, ours.devices = 2;
  twice.model_flops = 12, twice.devices = 4;
  peer.planned_bytes = 0, peer.devices = 1, peer.kernels = {"a library"};
  const std::vector<Standing> found = standings({{"plain", "", 4, true, {ours}, 20},
                                                 {"larger", "", 8, true, {twice}, 40},
                                                 {"peer", "", 4, true, {peer}, 30},
                                                 {"peer of half", "", 2, true, {peer}, 30},
                                                 {"above", "", 4, true, {peer}, 20},
                                                 {"program", "", 4, true, {peer}}});
  EXPECT_EQ(found[0].mfu, 6 / 0.5 / (2 * 20));
  EXPECT_EQ(found[1].mfu, 12 / 0.5 / (4 * 40)) << "its own FLOPs, devices and floats";
  EXPECT_EQ(found[2].mfu, 6 / 0.25 / 30) << "a peer tells no FLOPs: it trains the first's model";
  EXPECT_EQ(found[3].mfu, 3 / 0.25 / 30) << "of as many samples as it has";
  EXPECT_FALSE(found[4].mfu.has_value()) << "above the peak";
  EXPECT_FALSE(found[5].mfu.has_value()) << "no peak is known";
  EXPECT_EQ(found[2].kernels, peer.kernels);
}

TEST(Standing, SomeDisturbedTurnsOfManyDoNotMatter) {
  const std::vector<Turn> even(8, turn_of({1}));
  std::vector<Turn> disturbed = even;
  disturbed[2] = turn_of({3});
  std::vector<Turn> unsteady = even;
  for (std::size_t i = 0; i < 8; i += 2) unsteady[i] = turn_of({2});
  const std::vector<Standing> found = standings({{"plain", "", 1, true, even},
                                                 {"disturbed", "", 1, true, disturbed},
                                                 {"unsteady", "", 1, true, unsteady}});
  EXPECT_EQ(found[1].ratio, 1);
  EXPECT_NEAR(found[1].ratio_range->low, 1.0 / 3, 1e-12);
  EXPECT_TRUE(found[2].disagrees);
}

TEST(Standing, OfTurnsBeforeAFailureThereAreNumbers) {
  const std::vector<Standing> found =
      standings({{"plain", "", 1, true, {turn_of({1}), turn_of({1})}},
                 {"cut", "", 1, true, {turn_of({1}), failed("its process ended with code 9")}}});
  EXPECT_EQ(found[1].turns, 1);
  EXPECT_EQ(found[1].ratio, 1);
  EXPECT_EQ(found[1].failure, "its process ended with code 9");
}

TEST(Turn, IsReadAsItWasWritten) {
  std::vector<std::string> lines;
  TurnWriter writer([&](const std::string& line) { lines.push_back(line); });
  RunStart start;
  start.parameters = 7, start.tokens_per_step = 64, start.devices = 2;
  start.peak_bytes = 4096, start.host.memory = 512, start.flops_per_step = 1e9;
  start.recomputed_flops_per_step = 1e8;
  start.kernels = {"a", "b"};
  writer.on_start(start);
  writer.on_step({.step = 1, .loss = 4.25, .seconds = 9});
  StepRecord bad = {.step = 2, .loss = std::numeric_limits<double>::quiet_NaN(), .seconds = 0.5};
  bad.ok = false;
  writer.on_step(bad);
  writer.on_step({.step = 3, .loss = 4, .seconds = 0.25});
  writer.end(0, "");
  const TurnLength length{.warmup = 1, .steps = 2};
  TurnReader reader(length);
  for (const std::string& line : lines) reader.read(line);
  EXPECT_EQ(reader.steps_done(), 3);
  const Turn turn = std::move(reader).finish();
  EXPECT_TRUE(turn.measured()) << turn.failure;
  EXPECT_EQ(turn.step_seconds, (std::vector<double>{0.5, 0.25}));
  ASSERT_EQ(turn.losses.size(), 3);
  EXPECT_EQ(turn.losses[0], 4.25);
  EXPECT_TRUE(std::isnan(turn.losses[1]));
  EXPECT_EQ(turn.skipped, 1);
  EXPECT_EQ(turn.parameters, 7);
  EXPECT_EQ(turn.planned_bytes, 4096);
  EXPECT_EQ(turn.model_flops, 9e8) << "what is computed twice counts once";
  EXPECT_EQ(turn.planned_host_bytes, 512);
  EXPECT_EQ(turn.kernels, (std::vector<std::string>{"a", "b"}));
  EXPECT_GT(turn.peak_bytes, 0);
}

/// No build has PyTorch or JAX: at least their programs tell every key that turns are read by.
TEST(Turn, PeersTellTheirKeys) {
  for (const char* program : {"torch_turn.py", "jax_turn.py"}) {
    const std::string peer = read_file(repo_file(text("bench/peers/", program)), Fault::Resource) +
                             read_file(repo_file("bench/peers/turn_task.py"), Fault::Resource);
    for (const char* key : {"code", "message", "planned_only", "peak_rss", "seconds", "loss",
                            "parameters", "tokens_per_step", "devices", "flops_per_step",
                            "planned_bytes", "planned_host_bytes", "kernels"})
      EXPECT_NE(peer.find(text("\"", key, "\":")), std::string::npos) << program << ": " << key;
  }
}

TEST(Turn, ThatIsCutShortFailed) {
  std::vector<std::string> lines;
  TurnWriter writer([&](const std::string& line) { lines.push_back(line); });
  writer.on_step({.step = 1, .loss = 4, .seconds = 1});
  TurnReader early({.warmup = 0, .steps = 2});
  early.read(lines[0]);
  EXPECT_EQ(std::move(early).finish("its process was ended").failure, "its process was ended");
  writer.end(0, "");
  TurnReader stopped({.warmup = 0, .steps = 2});
  for (const std::string& line : lines) stopped.read(line);
  EXPECT_EQ(std::move(stopped).finish().failure, "it made 1 of 2 steps");
  writer.end(3, "no such file");
  TurnReader failed({.warmup = 0, .steps = 1});
  failed.read(lines[0]), failed.read(lines[2]);
  const Turn turn = std::move(failed).finish();
  EXPECT_EQ(turn.failure, "no such file");
  EXPECT_FALSE(turn.measured());
}

TEST(Turn, ThatDoesNotFitIsOnlyPlanned) {
  std::vector<std::string> lines;
  TurnWriter writer([&](const std::string& line) { lines.push_back(line); });
  RunStart start;
  start.peak_bytes = start.main_memory_bytes = std::int64_t{1} << 50;
  EXPECT_THROW(writer.on_start(start), Error);
  writer.end(5, "it takes 1 PiB");
  TurnReader reader({});
  for (const std::string& line : lines) reader.read(line);
  const Turn turn = std::move(reader).finish();
  EXPECT_TRUE(turn.planned_only);
  EXPECT_EQ(turn.planned_bytes, std::int64_t{1} << 50);
}

BenchReport report() {
  BenchReport out;
  out.model = "gpt2-tiny", out.flags = "--preset gpt2-tiny", out.processor = "A <B> & C";
  out.isa = "avx2", out.cores = 2, out.turns = 2;
  out.results = standings({{"plain", "", 4, true, {turn_of({2, 2}), turn_of({2, 2})}},
                           {"bf16", "--bf16", 4, true, {turn_of({1, 1}), turn_of({1, 1})}},
                           {"far", "--x", 4, true, {turn_of({1, 1}), turn_of({2, 2})}},
                           {"broken", "--y", 4, true, {failed("why")}},
                           {"large", "--z", 4, true, {failed("it takes more", true)}}});
  return out;
}

TEST(BenchReport, TextTellsWhatMayNotBeTrusted) {
  const std::string told = to_text(report());
  EXPECT_NE(told.find("2.00 (2.00 to 2.00)"), std::string::npos) << told;
  EXPECT_NE(told.find("far: turns disagree by more than 15%"), std::string::npos) << told;
  EXPECT_NE(told.find("broken: failed: why"), std::string::npos) << told;
  EXPECT_NE(told.find("large: planned only: it takes more"), std::string::npos) << told;
  EXPECT_NE(told.find("kernels of plain: hwy:matmul"), std::string::npos) << told;
  EXPECT_EQ(told.find("kernels of bf16"), std::string::npos) << told;
}

TEST(BenchReport, MfuIsAColumnWhereThereIsAPeak) {
  Turn ours = turn_of({2});
  ours.model_flops = 100;
  BenchReport with = report();
  with.peaks = "h100-256";
  with.results = standings({{"plain", "", 4, true, {ours}, 200}});
  const std::string told = to_text(with);
  EXPECT_NE(told.find("  MFU  "), std::string::npos) << told;
  EXPECT_NE(told.find("  25.0 %  "), std::string::npos) << told;
  EXPECT_NE(told.find("peak of devices of h100-256 "), std::string::npos) << told;
  EXPECT_EQ(to_text(report()).find("MFU"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(with))["results"][0]["mfu"], 0.25);
}

TEST(BenchReport, JsonHasEveryKey) {
  const nlohmann::json json = nlohmann::json::parse(to_json(report()));
  ASSERT_EQ(json["results"].size(), 5);
  for (const nlohmann::json& result : json["results"]) {
    for (const char* key : {"name", "step_seconds", "samples_per_s", "spread", "ratio",
                            "peak_bytes", "planned_peak_bytes", "losses", "skipped_steps"})
      EXPECT_TRUE(result.contains(key)) << key;
  }
  EXPECT_EQ(json["results"][1]["step_seconds"], 1);
  EXPECT_EQ(json["results"][1]["ratio"], 2);
  EXPECT_TRUE(json["results"][2]["ratio"].is_null());
  EXPECT_TRUE(json["results"][3]["step_seconds"].is_null());
  EXPECT_EQ(json["results"][4]["planned_only"], true);
}

TEST(BenchReport, ThePageNeedsNothingElseAndEscapesNames) {
  const std::string page = to_html(report());
  EXPECT_NE(page.find("A &lt;B&gt; &amp; C"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  std::size_t charts = 0;
  for (std::size_t at = 0; (at = page.find("<svg", at)) != std::string::npos; ++at) ++charts;
  EXPECT_EQ(charts, 4);
}

}  // namespace
}  // namespace tessera
