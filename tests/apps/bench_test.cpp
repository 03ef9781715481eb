/// `tessera bench`: what it measures, and what it refuses.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "repo_file.h"
#include "tessera/apps/switches.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kBench =
    "bench --preset gpt2-tiny --threads 1 --data @/text --steps 2 --warmup 1 ";

class BenchCommand : public testing::Test {
 protected:
  BenchCommand() {
    folder_.write("text", some_text());
    fs::create_directory(folder_ / "tmp");
    ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
  }
  ~BenchCommand() override { ::unsetenv("TMPDIR"); }

  Ran bench(const std::string& flags) const { return run(words(folder_.expand(kBench + flags))); }
  nlohmann::json json(const std::string& flags) const {
    const Ran ran = bench("--json " + flags);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  }

  Folder folder_;
};

TEST_F(BenchCommand, MeasuresTheRunThatFlagsDescribe) {
  const nlohmann::json told = json("--bf16 --turns 1");
  ASSERT_EQ(told["results"].size(), 1);
  const nlohmann::json& one = told["results"][0];
  EXPECT_GT(one["step_seconds"], 0);
  EXPECT_NEAR(one["samples_per_s"].get<double>() * one["step_seconds"].get<double>(), 8, 1e-9);
  EXPECT_EQ(one["ratio"], 1);
  EXPECT_EQ(one["losses"].size(), 3);
  EXPECT_GT(one["peak_bytes"], one["planned_peak_bytes"]);
  EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
}

TEST_F(BenchCommand, MfuIsOfThePeakThatIsNamed) {
  const nlohmann::json told = json("--turns 1 --switches bf16 --peak-of h100-256");
  EXPECT_EQ(told["peaks"], "h100-256");
  const auto flops = [](const nlohmann::json& row, double peak) {
    return row["mfu"].get<double>() * row["step_seconds"].get<double>() * peak;
  };
  const double f32 = flops(told["results"][0], 51e12), bf16 = flops(told["results"][1], 989e12);
  EXPECT_GT(f32, 6.0 * 8 * 32 * 200'000) << "6 for each of about 200,000 parameters and token";
  EXPECT_NEAR(bf16 / f32, 1, 0.02) << "the same model: casts are all that it has more";
  const Ran refused = bench("--turns 1 --peak-of h1000");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("h1000"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--peak-of"), std::string::npos) << refused.err;
}

TEST_F(BenchCommand, SwitchesStandBesideIt) {
  const nlohmann::json told = json(
      "--devices 2 --turns 2 --switches bf16+zero-1,tp=2,no-graph-optimization --html @/page.html");
  ASSERT_EQ(told["results"].size(), 4);
  EXPECT_EQ(told["results"][0]["name"], "plain");
  EXPECT_EQ(told["results"][1]["name"], "bf16+zero-1");
  EXPECT_EQ(told["results"][1]["flags"], "--bf16 --zero-stage=1");
  const nlohmann::json &plain = told["results"][0], &bf16 = told["results"][1],
                       &tp = told["results"][2], &slow = told["results"][3];
  EXPECT_LT(slow["loss_distance"]["largest"], 1e-5) << "to rounding";
  EXPECT_LT(tp["loss_distance"]["largest"], 1e-4) << "the same numbers";
  EXPECT_GT(bf16["loss_distance"]["largest"], 0);
  EXPECT_LT(bf16["loss_distance"]["largest"], 0.05);
  EXPECT_LT(tp["planned_peak_bytes"], plain["planned_peak_bytes"]);
  EXPECT_NE(read(folder_ / "page.html").find("bf16+zero-1"), std::string::npos);
}

TEST_F(BenchCommand, SwitchesOverruleTheFlagsOfAll) {
  const nlohmann::json told =
      json("--bf16 --devices 2 --zero-stage 1 --turns 1 --switches fp32,zero-2,fp16");
  ASSERT_EQ(told["results"].size(), 4);
  const auto losses = [&](std::size_t i) { return told["results"][i]["losses"]; };
  EXPECT_NE(losses(0), losses(1));
  EXPECT_EQ(losses(0), losses(2));
  EXPECT_NE(losses(1), losses(3));
}

TEST_F(BenchCommand, SkippedStepsAreTold) {
  const std::string flags = "--turns 1 --switches fp16+initial-loss-scale=1e15";
  const nlohmann::json results = json(flags)["results"];
  EXPECT_EQ(results[0]["skipped_steps"], 0);
  EXPECT_EQ(results[1]["skipped_steps"], 3);
  const Ran ran = bench(flags);
  EXPECT_NE(ran.out.find("fp16+initial-loss-scale=1e15: 3 of 3 steps were skipped"),
            std::string::npos)
      << ran.out;
}

TEST_F(BenchCommand, WhatDoesNotFitIsPlanned) {
  const Ran ran = bench("--json --turns 1 --width 16384 --heads 64 --layers 96");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const nlohmann::json one = nlohmann::json::parse(ran.out)["results"][0];
  EXPECT_EQ(one["planned_only"], true);
  EXPECT_TRUE(one["step_seconds"].is_null());
  EXPECT_GT(one["planned_peak_bytes"].get<double>(), 1e12);
}

/// Peers are asked by a program that stands for Python: it gets that of the peer and its task.
TEST_F(BenchCommand, APeerIsMeasuredWhereItsLossesAreOurs) {
  const auto peer = [&](const std::string& shell) {
    const std::string path = folder_.write("python", "#!/bin/sh\n" + shell);
    fs::permissions(path, fs::perms::owner_all);
    // Of all cores: no number of threads is told.
    const Ran ran =
        run(words(folder_.expand("bench --json --preset gpt2-tiny --data @/text --steps 2 --warmup "
                                 "1 --turns 1 --peer @/python")));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  };
  const std::string start =
      "echo '{\"parameters\":1,\"tokens_per_step\":256,\"devices\":1,\"flops_per_step\":0,"
      "\"planned_bytes\":0,\"planned_host_bytes\":0,\"kernels\":[\"none\"]}'\n";
  const std::string end =
      "echo '{\"code\":0,\"message\":\"\",\"planned_only\":false,\"peak_rss\":1000}'\n";
  const auto steps = [](const std::string& of_all, const std::string& of_compared) {
    return "losses='" + of_all + "'\ngrep -q '\"batch\":1,' \"$2\" && losses='" + of_compared +
           "'\nfor loss in $losses; do echo '{\"seconds\":2,\"loss\":'$loss'}'; done\n";
  };
  const nlohmann::json plain = json("--turns 1")["results"][0];
  std::string losses;
  for (const nlohmann::json& loss : plain["losses"]) losses += loss.dump() + " ";
  // What is compared is one sample of the micro-batch of 8.
  const nlohmann::json of_one = json("--turns 1 --global-batch-size 1")["results"][0];
  std::string compared;
  for (const nlohmann::json& loss : of_one["losses"]) compared += loss.dump() + " ";
  // The task has what it needs.
  const std::string checked =
      "for word in '\"batches\"' '\"weights\"' '\"rates\"' '\"width\":64' '\"mode\":\"eager\"' "
      "'\"threads\":[1-9]'; "
      "do\n"
      "grep -q \"$word\" \"$2\" || { echo \"no $word\" >&2; exit 1; }\ndone\n";
  const nlohmann::json good = peer(checked + start + steps(losses, compared) + end);
  EXPECT_TRUE(good["peer_problems"].empty()) << good["peer_problems"];
  ASSERT_GE(good["results"].size(), 2);
  EXPECT_EQ(good["results"][1]["name"], "PyTorch");
  EXPECT_EQ(good["results"][1]["step_seconds"], 2);
  EXPECT_LT(good["results"][1]["ratio"], 1);
  EXPECT_LT(good["results"][1]["loss_distance"]["largest"], 1e-5);

  const nlohmann::json other = peer(start + steps("9 9 9", "9 9 9") + end);
  EXPECT_EQ(other["results"].size(), 1);
  ASSERT_EQ(other["peer_problems"].size(), 2) << "one of each maker";
  EXPECT_NE(
      other["peer_problems"][0].get<std::string>().find("PyTorch: its loss in step 1 is 9, ours "),
      std::string::npos);
  // Of two makers, one that lacks its library does not keep the other out.
  const nlohmann::json broken =
      peer("case $1 in *torch*) echo no module named torch >&2; exit 1;; esac\n" + start +
           steps(losses, compared) + end);
  ASSERT_EQ(broken["peer_problems"].size(), 1);
  EXPECT_EQ(broken["peer_problems"][0],
            "PyTorch: its process ended with code 1: no module named torch");
  EXPECT_EQ(broken["results"][1]["name"], "JAX");
  const nlohmann::json none = json("--turns 1 --peer @/no-python");
  EXPECT_NE(none["peer_problems"][0].get<std::string>().find("cannot start"), std::string::npos);
  const nlohmann::json llama = json("--turns 1 --peer @/python --family llama");
  EXPECT_EQ(llama["peer_problems"],
            nlohmann::json({"no peer has models of family llama, only of gpt2 and bert"}));
}

/// Of a run on a plugin, peers are given its file and the number of its devices.
TEST_F(BenchCommand, APeerIsOnThePluginOfTheRun) {
  const fs::path plugin = repo_file("build/plugins/cpu");
  if (!fs::exists(plugin)) GTEST_SKIP() << "no plugin in " << plugin << ": ./dev accelerator cpu";
  const std::string path =
      folder_.write("python", "#!/bin/sh\ncat \"$2\" >>" + (folder_ / "tasks") + "\necho >>" +
                                  (folder_ / "tasks"));
  fs::permissions(path, fs::perms::owner_all);
  const nlohmann::json told =
      json("--turns 1 --layers 1 --device pjrt:cpu --devices 2 --peer " + path);
  EXPECT_EQ(told["peer_problems"].size(), 2) << "it makes no steps: " << told["peer_problems"];
  EXPECT_EQ(told["results"][0]["kernels"].dump().find("[\"pjrt:cpu "), 0) << told["results"][0];
  std::istringstream tasks(read(folder_ / "tasks"));
  int read_tasks = 0;
  for (std::string line; std::getline(tasks, line); ++read_tasks) {
    const nlohmann::json task = nlohmann::json::parse(line);
    EXPECT_EQ(task["device"], "cpu");
    EXPECT_EQ(task["devices"], 1) << "losses are compared on one device";
    EXPECT_EQ(task["batch"], 2) << "a sample for each device";
    EXPECT_EQ(fs::path(task["plugin"].get<std::string>()).extension(), ".so");
    EXPECT_TRUE(fs::exists(task["plugin"].get<std::string>()));
  }
  EXPECT_GE(read_tasks, 2);
}

/// A user's own programs, which tell nothing but the seconds of their steps.
TEST_F(BenchCommand, AnyProgramCanStandBeside) {
  const auto beside = [&](const std::vector<std::string>& commands) {
    Arguments words{"bench", "--json", "--preset", "gpt2-tiny", "--threads", "1", "--turns", "2"};
    for (const char* word : {"--data", "@/text", "--steps", "2", "--warmup", "1"})
      words.push_back(folder_.expand(word));
    words.emplace_back("--beside");
    words.insert(words.end(), commands.begin(), commands.end());
    const Ran ran = run(words);
    return std::pair(ran.code, nlohmann::json::parse(ran.out)["results"]);
  };
  const auto [code, told] = beside(
      {"two=echo begin; seq $TESSERA_STEPS | while read i; do echo '{\"seconds\": 0.5}'; done",
       "with losses=for i in 1 2 3 4; do echo '{\"seconds\": 0.25, \"loss\": '$i'}'; done"});
  EXPECT_EQ(code, 0);
  ASSERT_EQ(told.size(), 3);
  EXPECT_EQ(told[1]["name"], "two");
  EXPECT_EQ(told[1]["step_seconds"], 0.5);
  EXPECT_EQ(told[1]["samples_per_s"], 16) << "the batch is that of the run";
  EXPECT_TRUE(told[1]["tokens_per_s"].is_null());
  EXPECT_TRUE(told[1]["losses"].empty());
  EXPECT_FALSE(told[1]["ratio_spread"].is_null())
      << "turns may disagree: ours are not of one length";
  EXPECT_GT(told[1]["peak_bytes"], 0);
  EXPECT_EQ(told[2]["losses"], nlohmann::json({1, 2, 3})) << "no more steps than were asked for";
  EXPECT_TRUE(told[2]["loss_distance"].is_null()) << "of other samples, for all we know";

  const auto [failed, why] =
      beside({"silent=true", "short=echo '{\"seconds\": 1}'", "odd=echo '{\"seconds\": \"1\"}'",
              "broken=echo no such model >&2; exit 9", "killed=kill -9 $$"});
  EXPECT_EQ(failed, 5);
  ASSERT_EQ(why.size(), 6);
  EXPECT_EQ(why[1]["failure"],
            "it reported no step, which is {\"seconds\": S} on a line of its own");
  EXPECT_EQ(why[2]["failure"], "it made 1 of 3 steps");
  EXPECT_EQ(why[3]["failure"], "it wrote '{\"seconds\": \"1\"}', which is not a line of a turn");
  EXPECT_EQ(why[4]["failure"], "its process ended with code 9: no such model");
  EXPECT_NE(why[5]["failure"].get<std::string>().find("signal 9"), std::string::npos);
}

TEST_F(BenchCommand, PlansAndTrainsNothing) {
  const nlohmann::json told = json("--planned --devices 2 --switches zero-3");
  ASSERT_EQ(told["results"].size(), 2);
  for (const nlohmann::json& result : told["results"]) {
    EXPECT_EQ(result["planned_only"], true);
    EXPECT_TRUE(result["losses"].empty());
  }
  EXPECT_LT(told["results"][1]["planned_peak_bytes"], told["results"][0]["planned_peak_bytes"]);
}

TEST_F(BenchCommand, AllLeavesOutWhatCannotBe) {
  const nlohmann::json told = json("--turns 1 --bf16 --devices 3 --global-batch-size 6 --all");
  EXPECT_GT(told["results"].size(), 10);
  bool tp = false;
  for (const nlohmann::json& what : told["left_out"])
    tp = tp || what.get<std::string>().starts_with("tp=3: ");
  EXPECT_TRUE(tp) << told["left_out"];
}

/// The file that a run has written is measured as it is, but for where and how long it ran.
TEST_F(BenchCommand, MeasuresTheFileOfARun) {
  ASSERT_EQ(
      run(words(folder_.expand(
              "train --preset gpt2-tiny --threads 1 --data @/text --output @/run --steps 4 "
              "--bf16 --exit-interval 4 --eval-every 2 --save-every 2 --profile @/trace.json")))
          .code,
      0);
  fs::remove(folder_ / "trace.json");
  const Ran ran = run(words(folder_.expand(
      "bench --json --config @/run/config.toml --turns 1 --steps 5 --switches fp32,width=32")));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const nlohmann::json told = nlohmann::json::parse(ran.out);
  ASSERT_EQ(told["results"].size(), 3);
  EXPECT_EQ(told["results"][0]["losses"].size(), 7);
  EXPECT_NE(told["results"][0]["losses"], told["results"][1]["losses"]) << "the file says bf16";
  EXPECT_FALSE(fs::exists(folder_ / "trace.json"));
}

TEST_F(BenchCommand, ValuesHaveCommas) {
  const nlohmann::json told =
      json("--turns 1 --switches recompute+recompute-layers=0,2,lr=1e-3,lr=1e+0");
  ASSERT_EQ(told["results"].size(), 4);
  EXPECT_EQ(told["results"][1]["name"], "recompute+recompute-layers=0,2");
  EXPECT_EQ(told["results"][3]["flags"], "--lr=1e+0");
}

TEST_F(BenchCommand, NeedsAFolderForItsFiles) {
  ::setenv("TMPDIR", (folder_ / "none").c_str(), 1);
  const Ran ran = bench("");
  EXPECT_EQ(ran.code, 5);
  EXPECT_NE(ran.err.find("TMPDIR"), std::string::npos) << ran.err;
}

TEST_F(BenchCommand, ARunThatFailsIsTold) {
  fs::remove(folder_ / "text");
  const Ran ran = bench("");
  EXPECT_EQ(ran.code, 3) << "that of train";
  EXPECT_NE(ran.out.find("plain: failed: "), std::string::npos) << ran.out << ran.err;
}

TEST_F(BenchCommand, RefusesWhatIsNoSwitch) {
  const auto said = [&](const std::string& flags) {
    const Ran ran = bench(flags);
    EXPECT_EQ(ran.code, 2) << flags;
    EXPECT_TRUE(ran.out.empty()) << flags;
    return ran.err;
  };
  const auto expect = [&](const std::string& flags, const std::string& what) {
    const std::string err = said(flags);
    EXPECT_NE(err.find(what), std::string::npos) << flags << ": " << err;
  };
  expect("--switches bf61", "switches bf61: ");
  expect("--switches tp=3", "switches tp=3: ");
  expect("--switches bf16,,fp16", "has an empty name");
  expect("--switches bf16,bf16", "'bf16' twice");
  expect("--switches bf16+fp16", "switches bf16+fp16: ");
  expect("--switches tp", "switch tp needs a value, like tp=2");
  expect("--switches zero-1=2", "switch zero-1 takes no value");
  expect("--switches steps=5", "steps applies to all runs");
  expect("--switches help", "help is not a switch");
  expect("--html @/none/page.html", "' does not exist; make it");
  expect("--html @", "is a folder; name a file in it");
  expect("--html @/text", "is the file that data names");
  expect("--html @/a --results @/a", "html and results are both");
  expect("--switches bf16 --all", "all and switches are both given");
  expect("--output @/run", "output has no use in bench");
  expect("--switches save-every=3", "save-every has no use in bench");
  expect("--turns 0", "turns is '0'");
  expect("--warmup x", "warmup is 'x'");
  expect("--steps 0", "steps");
  expect("--html=", "--html has an empty value");
  expect("bf16", "unexpected 'bf16'");
  expect("--beside mine", "beside is 'mine'; give a name and a command");
  expect("--beside =true", "give a name and a command");
  expect("--beside plain=true", "beside 'plain' is the name of another row");
  expect("--switches bf16 --beside bf16=true", "beside 'bf16' is the name of another row");
  expect("--beside a=true a=false", "beside 'a' is the name of another row");
  expect("--planned --beside a=true", "planned and beside are both given");
  const std::string err = said("--widht 3");
  EXPECT_EQ(err.find("widht"), err.rfind("widht")) << "told once: " << err;
}

TEST(Switches, AllAreRunsThatThereAre) {
  for (const std::int64_t devices : {1, 2, 4}) {
    for (const SwitchSet& set : all_switches(devices)) {
      Arguments arguments =
          words(text("plan --preset gpt2-tiny --vocab-size 64 --threads 1 --devices ", devices));
      arguments.insert(arguments.end(), set.flags.begin(), set.flags.end());
      const Ran ran = run(arguments);
      EXPECT_EQ(ran.code, 0) << set.name << ": " << ran.err;
    }
  }
}

}  // namespace
}  // namespace tessera
