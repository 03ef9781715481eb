/// `tessera plan --auto` and what runs its plans.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "tessera/machines/machine_file.h"

namespace tessera {
namespace {

const std::string kModel =
    "--family gpt2 --layers 4 --heads 2 --width 32 --context 32 --global-batch-size 8 --threads 1 ";
const std::string kAuto = "plan --auto --vocab-size 40 " + kModel;

nlohmann::json planned_json(const std::string& line) {
  const Ran ran = run(words(line));
  EXPECT_EQ(ran.code, 0) << ran.err;
  return nlohmann::json::parse(ran.out);
}

std::string joined(const nlohmann::json& flags) {
  std::string out;
  for (const std::string flag : flags) out += flag + " ";
  return out;
}

TEST(AutoPlan, ExpertsAreSharedOutAsTheFlagSays) {
  const std::string line = "plan --auto --json --preset mixtral-tiny --devices 4 ";
  const std::string size = "--expert-model-parallel-size ";
  EXPECT_NE(joined(planned_json(line + size + "2")["plan"]).find(size + "2 "), std::string::npos);
  const Ran ran = run(words(line + size + "3 --data-parallel-size 4"));
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("expert-model-parallel-size 3"), std::string::npos) << ran.err;
}

TEST(AutoPlan, ItsFlagsPlanTheSameBytesAndSeconds) {
  for (const std::string machine : {"", "--machine h100-256 --devices 16 "}) {
    const auto found =
        planned_json(kAuto + machine + (machine.empty() ? "--devices 2 " : "") + "--json");
    const auto again = planned_json("plan " + machine + joined(found["plan"]) + "--json");
    EXPECT_EQ(found["planned_peak_bytes"], again["planned_peak_bytes"]);
    if (!machine.empty()) {
      EXPECT_EQ(found["predicted_step_seconds"], again["predicted_step_seconds"]);
    }
  }
}

TEST(AutoPlan, SaysHowFastItTrainsAndHowFarThatIsOff) {
  const std::string of_machine = kAuto + "--machine h100-256 --devices 4 ";
  const auto found = planned_json(of_machine + "--memory-margin 20 --json");
  EXPECT_EQ(found["memory_margin_percent"], 20);
  const double seconds = found["predicted_step_seconds"], samples = 8 / seconds;
  EXPECT_DOUBLE_EQ(found["predicted_samples_per_s"], samples);
  EXPECT_DOUBLE_EQ(found["predicted_tokens_per_s"], 32 * samples);
  // 6 FLOP for each of the layers' weights and each token, and what attention and the head take.
  const double mfu = found["predicted_mfu"];
  const double least = 6.0 * 4 * 12 * 32 * 32 * 32 * samples / (4 * 51e12);
  EXPECT_GT(mfu, least);
  EXPECT_LT(mfu, 2 * least);
  const Ran shown = run(words(of_machine));
  for (const char* part : {"  tokens/s  ", "  samples/s  ", "  MFU  ", "of 51 TFLOP/s a device",
                           "known error of these times: 25 % too short on average"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << shown.out;
  const Ran here = run(words(kAuto + "--devices 2"));
  EXPECT_EQ(here.out.find("  MFU"), std::string::npos) << "nobody knows its peak: " << here.out;
  EXPECT_NE(here.out.find("known error of these times: unknown, as this machine was not measured"),
            std::string::npos)
      << here.out;
}

/// The preset and the data are among them; that a script names the preset too does no harm.
TEST(AutoPlan, ItsFlagsAreAllThatMakesThePlan) {
  const Folder folder;
  folder.write("text.txt", some_text());
  for (const std::string& run : {std::string("--preset gpt2-tiny --vocab-size 40 --threads 1 "),
                                 folder.expand("--data @/text.txt --threads 1 ") + kModel}) {
    const auto found = planned_json("plan --auto --devices 2 --json " + run);
    const std::string flags = joined(found["plan"]) + "--json";
    EXPECT_EQ(found["planned_peak_bytes"], planned_json("plan " + flags)["planned_peak_bytes"]);
  }
  const auto found =
      planned_json("plan --auto --json --devices 2 --vocab-size 40 --preset gpt2-tiny");
  planned_json("plan --preset gpt2-tiny " + joined(found["plan"]) + "--json");
}

TEST(AutoPlan, APlanInAFileIsTrained) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const std::string data = "--data @/text.txt --vocab-size 16 ";
  const auto ran = [&](const std::string& line) { return run(words(folder.expand(line))); };
  const Ran planned =
      ran("plan --auto --devices 2 --write-plan @/plan.toml --html @/plan.html " + kModel + data);
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_NE(read(folder / "plan.html").find("Where ranks lie"), std::string::npos);
  const std::string train = "train --plan @/plan.toml --steps 2 ";
  const Ran trained = ran(train + kModel + data + "--output @/run");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(trained.err.find("bytes and seconds of the plan"), std::string::npos) << trained.err;
  const Ran again = ran(train + data + "--output @/run --bf16");
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("holds another run"), std::string::npos) << again.err;
  EXPECT_EQ(again.err.find("the plan"), std::string::npos) << "it is of this model: " << again.err;
  const Ran changed = ran(train + data + "--output @/changed --bf16 --bucket-mb 1");
  EXPECT_EQ(changed.code, 0) << changed.err;
  EXPECT_NE((changed.out + changed.err)
                .find("plan.toml' do not apply to this run, which differs in bucket-mb, bf16"),
            std::string::npos)
      << changed.out << changed.err;
  const Ran other = ran(train + kModel + data + "--output @/other --global-batch-size 16");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("disagree"), std::string::npos) << other.err;
  const Ran wider = ran(train + data + "--output @/other --width 64");
  EXPECT_EQ(wider.code, 2);
  EXPECT_NE(wider.err.find("was made for gpt2 of 4 layers, width 32"), std::string::npos)
      << wider.err;
  EXPECT_NE(wider.err.find("this run has gpt2 of 4 layers, width 64"), std::string::npos)
      << wider.err;
  const Ran elsewhere = ran(train + data + "--output @/other --machine a100-1024");
  EXPECT_EQ(elsewhere.code, 2);
  EXPECT_NE(elsewhere.err.find("and this run is for a100-1024"), std::string::npos)
      << elsewhere.err;
}

/// A plan may say the layers of each chunk, of whatever model.
TEST(AutoPlan, LayoutsOfFewLayersAreRun) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const std::string flags =
      "--family gpt2 --layers 2 --heads 2 --width 32 --context 32 --global-batch-size 8 "
      "--threads 1 --devices 2 --pipeline-model-parallel-size 2 --pipeline-layout 1,1 ";
  for (const std::string& line :
       {"plan --vocab-size 40 --schedule-svg @/a.svg " + flags, "verify --vocab-size 40 " + flags,
        "train --data @/text.txt --steps 2 --output @/run " + flags}) {
    const Ran ran = run(words(folder.expand(line)));
    EXPECT_EQ(ran.code, 0) << line << "\n" << ran.err;
  }
}

TEST(AutoPlan, TrainingPlansForItself) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran ran =
      run(words(folder.expand("train --auto --devices 2 --steps 2 --data @/text.txt "
                              "--output @/run " +
                              kModel)));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("plan for this machine, 2 of 2 devices"), std::string::npos) << ran.out;
}

/// Few samples for many devices, and a pipeline of one stage, are the planner's business.
TEST(AutoPlan, TrainingIsJudgedAsPlanningIs) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const std::string train = "train --auto --devices 2 --steps 2 --data @/text.txt --output @/run";
  const std::string model =
      " --family gpt2 --layers 4 --heads 2 --width 32 --context 32 --threads 1 ";
  int i = 0;
  for (const std::string flags :
       {"--global-batch-size 1", "--global-batch-size 8 --pipeline-schedule interleaved"}) {
    const Ran ran = run(words(folder.expand(text(train, i++, model, flags))));
    EXPECT_EQ(ran.code, 0) << flags << "\n" << ran.err;
    EXPECT_NE(ran.out.find("plan for this machine, 2 of 2 devices"), std::string::npos) << ran.out;
  }
  const Ran searched =
      run(words("plan --search-mode recursive_programming --devices 8 "
                "--global-batch-size 1 --vocab-size 40" +
                model));
  EXPECT_EQ(searched.code, 0) << searched.err;
  EXPECT_TRUE(searched.out.starts_with("recursive_programming on d0=2 d1=2 d2=2: "))
      << searched.out;
}

/// The devices are those of the machine, not the cores of this one.
TEST(AutoPlan, TrainingPlansForTheMachineThatIsNamed) {
  const Folder folder;
  folder.write("text.txt", some_text());
  Machine one;
  one.name = "one";
  for (const MachineLevel& level : machine_levels()) (one.*level.link).units = 1;
  folder.write("one.toml", machine_file_text(one));
  const std::string train = "train --auto --steps 2 --data @/text.txt --output @/run " + kModel;
  const Ran ran = run(words(folder.expand(train + "--machine @/one.toml")));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find(", 1 of 1 device"), std::string::npos) << ran.out;
  const Ran described = run(words(folder.expand(train + "--machine a100-1024")));
  EXPECT_EQ(described.code, 2);
  EXPECT_EQ(described.err.find("error: machine a100-1024 is only described: its plans have no "
                               "kernels and cannot run"),
            0U)
      << described.err;
  EXPECT_EQ(described.out, "") << "nothing is searched for";
  const Ran wrong = run(words(folder.expand(train + "--memory-cap much --wrong 3")));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("memory-cap"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("unknown flag --wrong"), std::string::npos) << wrong.err;
}

/// What is read stays as it is: under another path, and behind a link.
TEST(AutoPlan, NoResultTakesThePlaceOfWhatIsRead) {
  const Folder folder;
  const std::string machine = machine_file_text(Machine{});
  folder.write("m.toml", machine);
  folder.write("run.toml", "layers = 4\n");
  std::filesystem::create_symlink("m.toml", folder / "link.toml");
  const std::string asked = kAuto + "--machine @/m.toml --config @/run.toml ";
  for (const std::string told :
       {"--write-plan @/m.toml", "--html @/link.toml", "--write-plan @/./run.toml"}) {
    const Ran ran = run(words(folder.expand(asked + told)));
    EXPECT_EQ(ran.code, 2) << told;
    EXPECT_NE(ran.err.find("names, which it would replace; give another file"), std::string::npos)
        << ran.err;
    EXPECT_EQ(ran.out, "") << "nothing is searched for";
  }
  EXPECT_EQ(read(folder / "m.toml"), machine);
}

TEST(AutoPlan, Errors) {
  struct Case {
    std::string line, told;
  };
  const Case cases[] = {
      {kAuto + "--machine nowhere", "machine 'nowhere' is neither a known machine nor a file"},
      {kAuto + "--machine h100-256 --devices 300",
       "devices 300 is more than the 256 of machine h100-256"},
      {"plan --vocab-size 40 --search-mode recursive_programming --machine h100-256 --devices "
       "300 " +
           kModel,
       "devices 300 is more than the 256 of machine h100-256"},
      {kAuto + "--devices 2 --memory-cap 1kB",
       "memory-cap 1kB (1000 bytes, of which memory-margin leaves 950) is below"},
      {kAuto + "--devices 2 --tensor-model-parallel-size 3",
       "tensor-model-parallel-size 3 does not divide the model's 2 heads"},
      {"plan --vocab-size 40 --html @/a.html " + kModel, "--html need --auto"},
      {"plan --vocab-size 40 --memory-margin 5 " + kModel,
       "--memory-margin needs --auto; give it too"},
      {"train --data a.txt --output a --memory-margin 5 " + kModel,
       "--memory-margin needs --auto; give it too"},
      {kAuto + "--devices 2 --memory-margin 100",
       "--memory-margin is 100; give a percentage from 0 to below 100"},
      {kAuto + "--devices 2 --memory-margin some",
       "--memory-margin is 'some'; it must be a number"},
      {kAuto + "--devices 2 --write-plan nosuch/p.toml", "write-plan 'nosuch/p.toml': folder '"},
      {kAuto + "--devices 2 --html . --write-plan=", "html '.' is a folder; name a file in it"},
      {kAuto + "--devices 2 --write-plan=",
       "--write-plan has an empty value, perhaps an unset variable"},
      {kAuto + "--devices 2 --write-plan both.x --html ./both.x",
       "write-plan and html are both './both.x'; give each its own file"},
      {kAuto + "--machine=", "--machine has an empty value, perhaps an unset variable"},
      {"train --auto --write-plan a.toml --html=b --auto-precision " + kModel,
       "  --write-plan is a flag of tessera plan --auto\n  --html is a flag of tessera plan "
       "--auto\n"
       "  --auto-precision is a flag of tessera plan --auto\n"},
      {"plan --vocab-size 40 --search-mode recursive_programming --json --verbose " + kModel,
       "--json does nothing with --search-mode recursive_programming; leave it out\n"
       "  --verbose does nothing with --search-mode recursive_programming; leave it out"},
      {kAuto + "--verbose --placements --schedule-svg a.svg",
       "  --verbose does nothing with --auto; leave it out, and give it later with the flags that "
       "--auto finds\n"
       "  --placements does nothing with --auto; leave it out, and give it later with the flags "
       "that --auto finds\n"
       "  --schedule-svg does nothing with --auto; leave it out, and give it later with the flags "
       "that --auto finds"},
      {"plan --vocab-size 40 --search-mode recursive_programming --tensor-model-parallel-size 2 "
       "--zero-stage 1 --micro-batch-size 2 " +
           kModel,
       "\n  --zero-stage does nothing with --search-mode recursive_programming; leave it out"},
      {"plan --vocab-size 40 --search-mode= " + kModel,
       "--search-mode has an empty value, perhaps an unset variable"},
      {"train --plan= --data a.txt --output a " + kModel,
       "--plan has an empty value, perhaps an unset variable"},
      {"train --auto --plan plan.toml " + kModel, "give one"}};
  for (const Case& c : cases) {
    const Ran ran = run(words(c.line));
    EXPECT_EQ(ran.code, 2) << c.line;
    EXPECT_NE(ran.err.find(c.told), std::string::npos) << c.line << "\n" << ran.err;
  }
}

}  // namespace
}  // namespace tessera
