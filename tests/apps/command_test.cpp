#include "apps/command_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "repo_file.h"

namespace tessera {
namespace {

constexpr const char* kTrain =
    "train --preset llama-tiny --layers 1 --data @/text.txt --output @/run --threads 1 ";

TEST(Command, TrainsResumesInspectsAndSamples) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran first = run(words(folder.expand(std::string(kTrain) + "--steps 12 --exit-interval 5")));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("stopped after --exit-interval: step 5 of 12"), std::string::npos);
  const Ran second = run(words(folder.expand(std::string(kTrain) + "--steps 12 --resume auto")));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.out.find("resuming after step 5\n"), std::string::npos) << second.out;
  EXPECT_NE(second.out.find("step 12  validation loss "), std::string::npos);
  const Ran third = run(words(folder.expand(std::string(kTrain) + "--steps 12 --resume auto")));
  EXPECT_EQ(third.code, 0) << "nothing to do is success";
  EXPECT_NE(third.out.find("nothing to do"), std::string::npos);

  const Ran digest = run({"inspect", folder / "run", "--digest"});
  EXPECT_EQ(digest.out.size(), 33u) << digest.out << digest.err;
  EXPECT_EQ(run({"inspect", folder / "run", "--verify"}).code, 0);
  EXPECT_NE(run({"inspect", folder / "run"}).out.find("layers.0"), std::string::npos);

  const Arguments sample = {"sample", folder / "run", "--prompt", "line 1", "--tokens", "20"};
  const Ran one = run(sample), two = run(sample);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out.substr(0, 6), "line 1");
  EXPECT_EQ(one.out.size(), 27u) << "six characters, twenty tokens, one new line";
  EXPECT_EQ(one.out, two.out) << "a sample is a function of its seed";
  const Ran foreign = run({"sample", folder / "run", "--prompt", "Z"});
  EXPECT_EQ(foreign.code, 2) << foreign.err;
  EXPECT_EQ(foreign.err.substr(0, 17), "error: --prompt: ") << foreign.err;
}

/// A switch that is neither on nor off must not be off in silence.
TEST(Command, SwitchesAreTrueOrFalse) {
  const Folder folder;
  folder.write("text.txt", some_text());
  ASSERT_EQ(run(words(folder.expand(std::string(kTrain) + "--steps 1"))).code, 0);
  struct Row {
    const char *line, *message;
  };
  for (const Row& row : {
           Row{"inspect @/run --verify=yes", "--verify is 'yes'"},
           Row{"inspect @/run --digest=no", "--digest is 'no'"},
           Row{"inspect @/run --digest=", "--digest is ''"},
           Row{"plan --preset gpt2-tiny --vocab-size 64 --json=1", "--json is '1'"},
           Row{"verify --preset gpt2-tiny --json=True", "--json is 'True'"},
           Row{"prepare @/text.txt --output @/prepared --overwrite=on", "--overwrite is 'on'"},
           Row{"plan --preset gpt2-tiny --vocab-size 64 --no-amx=off", "--no-amx is 'off'"},
       }) {
    const Ran ran = run(words(folder.expand(row.line)));
    EXPECT_EQ(ran.code, 2) << row.line;
    EXPECT_EQ(ran.err, text("error: ", row.message, "; it is a switch: true or false\n"));
    EXPECT_EQ(ran.out, "") << row.line;
  }
  EXPECT_EQ(run({"inspect", folder / "run", "--digest=true"}).out,
            run({"inspect", folder / "run", "--digest"}).out);
  EXPECT_EQ(run({"inspect", folder / "run", "--digest=false"}).out,
            run({"inspect", folder / "run"}).out);
}

/// What standard output says may be read by nobody.
TEST(Command, VerifyThatFailsSaysSoAsAnError) {
  // So many steps at such a rate make rounding as large as the numbers.
  const std::string verify =
      "verify --preset gpt2-tiny --layers 1 --devices 2 --steps 60 --lr 0.3 ";
  for (const char* flag : {"", "--json"}) {
    const Ran ran = run(words(verify + flag));
    EXPECT_EQ(ran.code, 6);
    EXPECT_NE(ran.out, "");
    EXPECT_EQ(ran.err.find("error: the mesh computes other numbers than one device: worst is "), 0u)
        << ran.err;
    EXPECT_EQ(ran.err.find('\n'), ran.err.size() - 1) << ran.err;
  }
}

/// That is no fault of the mesh, and nothing to report.
TEST(Command, VerifySaysThatOneDeviceOverflows) {
  const std::string verify =
      "verify --preset gpt2-tiny --layers 1 --devices 2 --steps 3 --lr 1e30 ";
  for (const char* flag : {"", "--json"}) {
    const Ran ran = run(words(verify + flag));
    EXPECT_EQ(ran.code, 6);
    EXPECT_EQ(ran.out.empty(), flag[0] == '\0') << ran.out;
    EXPECT_EQ(ran.out.find("report"), std::string::npos) << ran.out;
    EXPECT_EQ(ran.err.find("error: one device alone computes inf or nan, first in step "), 0u)
        << ran.err;
    EXPECT_NE(ran.err.find("; lower --lr\n"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find('\n'), ran.err.size() - 1) << ran.err;
  }
}

/// Counts how often what was written is passed on.
struct CountFlushes : std::stringbuf {
  int sync() override { return ++count, 0; }
  int count = 0;
};

TEST(Command, ASampleIsWrittenAsItIsDrawn) {
  const Folder folder;
  folder.write("text.txt", some_text());
  ASSERT_EQ(run(words(folder.expand(std::string(kTrain) + "--steps 1"))).code, 0);
  CountFlushes buffer;
  std::ostream out(&buffer);
  std::ostringstream err;
  Console console{out, err};
  EXPECT_EQ(run_command({"sample", folder / "run", "--tokens", "20"}, console), 0) << err.str();
  EXPECT_GE(buffer.count, 20);
  EXPECT_EQ(buffer.str().size(), 21u) << "twenty tokens and one new line";
}

TEST(Command, ConfigOfARunMakesItAgain) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran first = run(words(folder.expand(std::string(kTrain) + "--steps 3 --dropout 0.1")));
  ASSERT_EQ(first.code, 0) << first.err;
  const Ran second = run({"train", "--config", folder / "run/config.toml", "--output",
                          folder / "again", "--eval-at-end"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.out.find(folder.expand("notice: --output @/again overrides output in "
                                          "@/run/config.toml:")),
            std::string::npos)
      << second.out;
  EXPECT_EQ(run({"inspect", folder / "run", "--digest"}).out,
            run({"inspect", folder / "again", "--digest"}).out);
}

TEST(Command, ItsConfigurationFileGoesOnAsItsFlagsDo) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const std::string begin =
      "train --layers 1 --heads 2 --width 16 --context 16 --lr-warmup-steps 1 --threads 1 "
      "--data @/text.txt --output ";
  for (const char* output : {"@/flags", "@/file"})
    ASSERT_EQ(run(words(folder.expand(begin + output + " --steps 3"))).code, 0);
  const Ran flags = run(words(folder.expand(begin + "@/flags --steps 6 --resume auto")));
  ASSERT_EQ(flags.code, 0) << flags.err;
  const Ran file =
      run(words(folder.expand("train --config @/file/config.toml --steps 6 --resume auto")));
  ASSERT_EQ(file.code, 0) << file.err;
  const auto rates = [&](const std::string& output) {
    std::vector<std::string> out;
    for (const std::string& line : split(read(folder / (output + "/metrics.jsonl")), '\n'))
      out.push_back(line.substr(0, line.find(",\"grad_norm\"")));
    return out;
  };
  EXPECT_EQ(rates("flags"), rates("file")) << "losses and learning rates";
  EXPECT_EQ(run({"inspect", folder / "flags", "--digest"}).out,
            run({"inspect", folder / "file", "--digest"}).out);
}

TEST(Command, AModelThatIsNotToldIsThatOfTheCheckpoint) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran first = run(words(folder.expand(std::string(kTrain) + "--steps 6 --exit-interval 2")));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find(folder.expand("resume with --config @/run/config.toml --resume auto\n")),
            std::string::npos)
      << first.out;
  const std::string bare = "train --data @/text.txt --output @/run --resume auto --threads 1 ";
  const Ran second = run(words(folder.expand(bare + "--steps 4")));
  ASSERT_EQ(second.code, 0) << second.err;
  const Ran third = run(
      words(folder.expand("train --config @/run/config.toml --resume auto --steps 5 --threads 1")));
  ASSERT_EQ(third.code, 0) << third.err << "the file has the checkpoint's model";
  const Ran other = run(words(folder.expand(bare + "--steps 6 --width 32")));
  EXPECT_EQ(other.code, 4);
  EXPECT_NE(other.err.find("is of another model: width is 64 there and 32 here; give the same"),
            std::string::npos)
      << other.err;
}

TEST(Command, PlansWithoutData) {
  const Arguments plan = words("plan --preset gpt2-tiny --vocab-size 65");
  const Ran table = run(plan);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("\nparameters     206,272\n"), std::string::npos) << table.out;
  Arguments json = plan;
  json.push_back("--json");
  const Ran object = run(json);
  EXPECT_EQ(object.out.substr(0, 25), "{\n  \"parameters\": 206272,") << object.out;
}

TEST(Command, ThePlanIsWhatTheRunUses) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const auto number = [](const std::string& json, std::string_view key) {
    const std::size_t at = json.find(text("\"", key, "\": "));
    return at == std::string::npos ? -1 : std::stoll(json.substr(at + key.size() + 4));
  };
  int runs = 0;
  for (const char* flags : {"", "--micro-batch-size 2 --sample-every 2", "--no-eval-at-end"}) {
    const std::string what =
        folder.expand(text("--preset llama-tiny --data @/text.txt --threads 2 "
                           "--output @/run",
                           runs++, " --steps 2 ", flags));
    const Ran planned = run(words("plan --json " + what));
    const Ran trained = run(words("train " + what));
    ASSERT_EQ(planned.code + trained.code, 0) << planned.err << trained.err;
    const std::string summary = read(folder / text("run", runs - 1, "/summary.json"));
    for (const char* key : {"planned_peak_bytes", "lower_bound_bytes", "parameters"})
      EXPECT_EQ(number(planned.out, key), number(summary, key)) << key << flags;
    EXPECT_EQ(number(planned.out, "planned_peak_bytes"), number(summary, "measured_peak_bytes"));
    EXPECT_GT(number(summary, "text"), 0) << summary;
    EXPECT_GT(number(summary, "program"), 0) << summary;
    EXPECT_GE(number(summary, "plan"), 0) << "nothing where this process planned the same before";
    EXPECT_NE(planned.out.find(R"("op": "attention_grad")"), std::string::npos) << "a workspace\n"
                                                                                << planned.out;
    EXPECT_NE(trained.out.find("\nmemory: "), std::string::npos) << trained.out;
  }
}

TEST(Command, DumpsGraphsAfterEachPass) {
  const Folder folder;
  const Ran ran = run(
      words(folder.expand("plan --preset gpt2-tiny --layers 1 --vocab-size 65 --dump-dir @/dump")));
  EXPECT_EQ(ran.code, 0) << ran.err;
  std::string found;  // without the numbers of the passes
  for (const auto& entry : std::filesystem::directory_iterator(folder / "dump")) {
    const std::string name = entry.path().filename();
    EXPECT_NE(read(entry.path()), "") << name;
    const std::size_t dot = name.find('.');
    found += text(name.substr(0, dot), name.substr(name.find('.', dot + 1)), "\n");
  }
  for (const char* name : {"train.simplify.txt", "train.propagate.txt",
                           "train.partition.forward.txt", "evaluate.simplify.txt"}) {
    EXPECT_NE(found.find(text(name, "\n")), std::string::npos) << name << " in\n" << found;
  }
}

TEST(Command, ProfilesAStep) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran ran = run(words(folder.expand(
      "train --preset gpt2-tiny --layers 1 --data @/text.txt --output @/run --steps 4 --threads 1 "
      "--profile @/trace.json --profile-steps 1 --no-eval-at-end")));
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* told : {"profile of steps 3 to 3 on cpu x 1", " in no kernel\n",
                           "! more than 2 % of the step", "wrote the trace @/trace.json\n"})
    EXPECT_NE(ran.out.find(folder.expand(told)), std::string::npos) << told << " in\n" << ran.out;
  EXPECT_EQ(read(folder / "trace.json").substr(0, 23), "{\"displayTimeUnit\":\"ms\"");
}

TEST(Command, WhatNeverValidatesDoesNotPlanForIt) {
  const std::string plan = "plan --preset gpt2-tiny --layers 1 --vocab-size 65 --json ";
  const auto evaluates = [&](const std::string& flags) {
    return run(words(plan + flags)).out.find("\"evaluate\"") != std::string::npos;
  };
  EXPECT_TRUE(evaluates(""));
  EXPECT_FALSE(evaluates("--no-eval-at-end"));
  EXPECT_TRUE(evaluates("--no-eval-at-end --eval-every 5"));
  EXPECT_FALSE(evaluates("--held-out 0"));
}

/// Starts the command in a process of its own, and once it has written its metrics sends it
/// `signal`. Returns its exit code.
int stopped_by(int signal, const Arguments& arguments, const std::string& metrics) {
  const pid_t child = fork();
  if (child == 0) {
    ::signal(signal, SIG_DFL);  // a script that starts tests by & ignores SIGINT
    _exit(run(arguments).code);
  }
  using namespace std::chrono_literals;
  for (int i = 0; i < 2000 && read(metrics).empty(); ++i) std::this_thread::sleep_for(10ms);
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Command, StopsOnRequestWithACheckpoint) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Arguments train = words(folder.expand(std::string(kTrain) + "--steps 1000000"));
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_EQ(stopped_by(signal, train, folder / "run/metrics.jsonl"), 75);
    EXPECT_EQ(run({"inspect", folder / "run", "--verify"}).code, 0);
    EXPECT_FALSE(std::filesystem::exists(folder / "run/lock"));
    std::filesystem::remove_all(folder / "run");
  }
}

TEST(Command, RefusesTheFolderOfALivingRunAndTakesThatOfADeadOne) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Arguments train =
      words(folder.expand(std::string(kTrain) + "--steps 1000000 --resume auto"));
  const pid_t child = fork();
  if (child == 0) _exit(run(train).code);
  using namespace std::chrono_literals;
  for (int i = 0; i < 2000 && read(folder / "run/metrics.jsonl").empty(); ++i)
    std::this_thread::sleep_for(10ms);
  const Ran refused = run(train);
  EXPECT_EQ(refused.code, 5);
  EXPECT_NE(refused.err.find(text("process ", child, ", since ")), std::string::npos)
      << refused.err;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  folder.write("run/summary.json.partial-17-0", "{");  // as if it had been killed in writing it
  const Ran taken = run(words(folder.expand(std::string(kTrain) + "--steps 2 --resume auto")));
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_NE(taken.out.find("notice: took over the lock of a run that no longer exists: host "),
            std::string::npos)
      << taken.out;
  EXPECT_FALSE(std::filesystem::exists(folder / "run/summary.json.partial-17-0"));
}

TEST(Command, StopsWhereNumbersStayInfinite) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran ran = run(words(folder.expand(std::string(kTrain) +
                                          "--steps 50 --lr 1e30 --min-lr 1e30 --lr-decay-style "
                                          "constant --lr-warmup-steps 0 --clip-grad 0")));
  EXPECT_EQ(ran.code, 6) << ran.out;
  EXPECT_NE(ran.err.find("error: loss or gradient was inf or nan in 3 steps in a row, 2 to 4"),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(run({"inspect", folder / "run", "--verify"}).code, 0);
}

TEST(Command, VersionIsThatOfTheBuild) {
  EXPECT_NE(read(repo_file("CMakeLists.txt")).find(text("project(tessera VERSION ", kVersion, " ")),
            std::string::npos);
  EXPECT_EQ(run({"version"}).out, text("tessera ", kVersion, "\n"));
}

TEST(Command, HelpNamesEveryFlag) {
  for (const char* command : {"train", "plan", "sample", "prepare", "inspect"}) {
    const Ran flag = run({command, "--help"}), word = run({"help", command});
    EXPECT_EQ(flag.code, 0);
    EXPECT_EQ(flag.out, word.out);
    EXPECT_EQ(flag.out.substr(0, 8), "tessera ");
  }
  EXPECT_NE(run({"train", "--help"}).out.find("--train-iters"), std::string::npos);
  const std::string plan = run({"plan", "--help"}).out;
  for (const char* name : {"--json", "--width", "--micro-batch-size", "--optimizer", "--threads"})
    EXPECT_NE(plan.find(name), std::string::npos) << name;
  for (const char* name : {"--lr", "--seed", "--resume", "--output"})
    EXPECT_EQ(plan.find(text("  ", name, " ")), std::string::npos) << name;
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"help"}).code, 0);
}

}  // namespace
}  // namespace tessera
