/// What a run trains on, begins with and validates on: --epochs, --init-from, --valid-data,
/// --eval-iters, --zero-stage.

#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "tessera/checkpoint/checkpoint.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

/// 3000 characters: 2700 to train on, of which windows of 32 are 84; 8 of them a step.
constexpr const char* kTrainTiny = "train --preset gpt2-tiny --layers 1 --data @/text.txt ";

struct Runs {
  Folder folder;
  Runs() { folder.write("text.txt", some_text().substr(0, 3000)); }

  Ran command(const std::string& line) const { return run(words(folder.expand(line))); }
  Json train(const std::string& name, const std::string& flags) const {
    const Ran ran = command(kTrainTiny + flags + " --output @/" + name);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(read(folder / (name + "/summary.json")));
  }
  std::string digest(const std::string& name) const {
    return command("inspect @/" + name + " --digest").out;
  }
  /// Kind and loss of each line.
  std::vector<std::pair<std::string, double>> losses(const std::string& name) const {
    std::vector<std::pair<std::string, double>> out;
    for (const std::string& line : split(read(folder / (name + "/metrics.jsonl")), '\n')) {
      if (line.empty()) continue;
      const Json json = Json::parse(line);
      out.emplace_back(json["kind"], json["loss"]);
    }
    return out;
  }
};

TEST(RunOptions, EpochsArePassesOverTheData) {
  const Runs runs;
  EXPECT_EQ(runs.train("one", "--epochs 1")["steps"], 11) << "84 windows, 8 a step";
  EXPECT_EQ(runs.train("two", "--epochs 2 --lr-warmup-steps 3")["steps"], 21);
  const Ran again = runs.command("train --config @/one/config.toml --resume auto");
  EXPECT_NE(again.out.find("all steps are complete"), std::string::npos) << again.out << again.err;
  const Ran longer = runs.command("train --config @/one/config.toml --resume auto --steps 13");
  EXPECT_NE(longer.out.find("done: step 13 of 13"), std::string::npos) << longer.out << longer.err;
  const Ran passes = runs.command("train --config @/one/config.toml --resume auto --epochs 2");
  EXPECT_NE(passes.out.find("done: step 21 of 21"), std::string::npos) << passes.out << passes.err;
  const Ran both = runs.command(std::string(kTrainTiny) + "--output @/x --epochs 2 --steps 5");
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(both.err,
            "error: --epochs 2 and --steps 5 disagree: both set the length of the run; give one\n");
}

TEST(RunOptions, EpochsThatWereInterruptedAreTheSame) {
  const Runs runs;
  runs.train("whole", "--epochs 2 --eval-every 7");
  runs.train("cut", "--epochs 2 --eval-every 7 --exit-interval 9");
  const Ran rest = runs.command("train --config @/cut/config.toml --resume auto --exit-interval 0");
  EXPECT_EQ(rest.code, 0);
  EXPECT_EQ(rest.out.find("with a change"), std::string::npos) << rest.out;
  EXPECT_EQ(runs.digest("whole"), runs.digest("cut"));
  EXPECT_EQ(runs.losses("whole"), runs.losses("cut"));
  const Ran longer = runs.command("train --config @/cut/config.toml --resume auto --epochs 3");
  EXPECT_NE(longer.out.find("resuming with a change: lr-decay-steps is 21 there and 32 here"),
            std::string::npos)
      << longer.out;
}

/// Every parameter of `name` is that of the run `from`; counters and moments are fresh.
void expect_weights_of(const Runs& runs, const std::string& name, const std::string& from) {
  const Checkpoint a = Checkpoint::open(runs.folder / from),
                   b = Checkpoint::open(runs.folder / name);
  for (const TensorEntry& tensor : b.tensors()) {
    const auto size = static_cast<std::size_t>(tensor.type.bytes());
    std::vector<std::byte> expected(size), found(size);
    if (tensor.role == Role::Parameter) a.read(tensor.name, expected);
    b.read(tensor.name, found);
    EXPECT_TRUE(found == expected) << tensor.name;
  }
}

TEST(RunOptions, InitFromTakesWeightsAlone) {
  const Runs runs;
  runs.train("first", "--steps 3");
  for (const std::string devices : {"1", "2 --zero-3-memory-optimization"}) {
    const std::string name = "second" + devices.substr(0, 1);
    runs.train(name, "--steps 0 --seed 9 --init-from @/first --devices " + devices);
    expect_weights_of(runs, name, "first");
  }
  runs.train("whole", "--steps 4 --init-from @/first");
  runs.train("cut", "--steps 4 --init-from @/first --exit-interval 2");
  EXPECT_EQ(runs.command("train --config @/cut/config.toml --resume auto --exit-interval 0").code,
            0);
  EXPECT_EQ(runs.digest("whole"), runs.digest("cut")) << "a resumed run goes on";
  const Ran other = runs.command(
      "train --preset gpt2-tiny --layers 2 --heads 4 --data @/text.txt --steps 1 "
      "--output @/x --init-from @/first");
  EXPECT_EQ(other.code, 4);
  EXPECT_NE(other.err.find("is of another model: layers is 1 there and 2 here; heads is 8 there "
                           "and 4 here; give the same"),
            std::string::npos)
      << other.err;
  EXPECT_FALSE(std::filesystem::exists(runs.folder / "x"));
  EXPECT_EQ(runs.command(std::string(kTrainTiny) + "--output @/x --init-from @/nothing").code, 4);
}

/// The run's vocabulary is that of its data, which nothing else tells.
TEST(RunOptions, InitFromIsOfAllCommandsThatCompileItsModel) {
  const Runs runs;
  for (const std::string kind : {"characters", "bytes"}) {
    runs.train(kind, "--steps 1 --vocabulary " + kind);
    const std::string from = " --data @/text.txt --init-from @/" + kind;
    const std::string tiny = " --preset gpt2-tiny --layers 1";
    for (const std::string& command :
         {"plan" + tiny + from, "verify --steps 1 --devices 2" + tiny + from,
          "bench --steps 1" + tiny + from}) {
      const Ran ran = runs.command(command);
      EXPECT_EQ(ran.code, 0) << command << "\n" << ran.err;
    }
  }
}

/// A tokenizer of another program is recorded: the run needs its own folder alone.
TEST(RunOptions, ATokenizerGoesWithItsRun) {
  const Runs runs;
  std::string vocabulary = "[UNK]\n[CLS]\n[SEP]\n";
  for (char c = 'a'; c <= 'z'; ++c) vocabulary += std::string{c, '\n', '#', '#', c, '\n'};
  runs.folder.write("vocab.txt", vocabulary);
  runs.folder.write("other.txt", vocabulary + "the\n");
  runs.train("first", "--steps 2 --tokenizer-name-or-path @/vocab.txt");
  const std::string go_on = std::string(kTrainTiny) + "--output @/first --steps 3 --resume auto";
  const Ran other = runs.command(go_on + " --tokenizer-name-or-path @/other.txt");
  EXPECT_EQ(other.code, 4);
  EXPECT_NE(other.err.find("other.txt' is not the one of checkpoint '"), std::string::npos)
      << other.err;
  std::filesystem::remove(runs.folder / "vocab.txt");
  EXPECT_EQ(runs.command(go_on).code, 0);
  const Ran written = runs.command("sample @/first --prompt abc --tokens 12");
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out.substr(0, 3), "abc");
  const Ran both = runs.command(std::string(kTrainTiny) +
                                "--output @/x --vocabulary bytes --tokenizer @/other.txt");
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("but vocabulary is bytes; give one"), std::string::npos);
  const Ran none = runs.command(std::string(kTrainTiny) + "--output @/x --vocabulary tokenizer");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("vocabulary is tokenizer, but no tokenizer is given"), std::string::npos);
}

/// Ids mean what they meant for the weights, whatever the new text has.
TEST(RunOptions, WeightsKeepTheirVocabulary) {
  const Runs runs;
  runs.train("first", "--steps 2");
  const std::string all = some_text().substr(0, 3000);
  std::string fewer = all;  // ids would shift by one
  std::erase(fewer, ' ');
  runs.folder.write("fewer.txt", fewer);
  runs.folder.write("more.txt", all + "?! more");
  const std::string begin = "train --preset gpt2-tiny --layers 1 --output @/";
  const auto vocabulary = [&](const std::string& name) {
    return Checkpoint::open(runs.folder / name).record().texts.at("vocabulary");
  };
  const auto starts = [&](const std::string& line) {
    const Ran ran = runs.command(begin + line);
    EXPECT_EQ(ran.code, 0) << ran.err;
  };
  starts("a --steps 1 --init-from @/first --data @/fewer.txt");
  starts("b --steps 3 --resume @/first --allow-changes --data @/fewer.txt");
  EXPECT_EQ(vocabulary("a"), vocabulary("first"));
  EXPECT_EQ(vocabulary("b"), vocabulary("first"));
  for (const std::string from : {"--init-from @/first", "--resume @/first --allow-changes"}) {
    const Ran more = runs.command(begin + "x --steps 3 --data @/more.txt " + from);
    EXPECT_EQ(more.code, 3);
    EXPECT_NE(more.err.find("'?', U+003F, is not in the vocabulary of "), std::string::npos);
    EXPECT_NE(more.err.find("nor are '!', U+0021; 'm', U+006D; "), std::string::npos) << more.err;
    EXPECT_NE(more.err.find("in the vocabulary of checkpoint '"), std::string::npos) << more.err;
    const Ran kind =
        runs.command(begin + "x --steps 3 --data @/text.txt --vocabulary bytes " + from);
    EXPECT_EQ(kind.code, 4);
    EXPECT_NE(kind.err.find("is of another model: vocabulary is characters there and bytes here"),
              std::string::npos)
        << kind.err;
  }
  EXPECT_FALSE(std::filesystem::exists(runs.folder / "x"));
  // Bytes, which no flag tells the second run: 256 of them, though the text has 11 characters.
  starts("bytes --steps 1 --data @/text.txt --vocabulary bytes");
  starts("c --steps 1 --init-from @/bytes --data @/text.txt");
  EXPECT_EQ(vocabulary("c"), vocabulary("bytes"));
}

/// What a family derives is the same model if it is told; what changes numbers alone is another.
TEST(RunOptions, AModelIsComparedWhole) {
  const Runs runs;
  runs.train("first", "--steps 1");
  const auto goes_on = [&](const std::string& flags) {
    return runs.command(std::string(kTrainTiny) + "--output @/first --resume auto --steps 1 " +
                        flags);
  };
  for (const char* same : {"--ffn-width 256", "--kv-heads 8", "--norm-eps 1e-5"})
    EXPECT_EQ(goes_on(same).code, 0) << goes_on(same).err;
  struct {
    const char *flags, *told;
  } const others[] = {
      {"--ffn-width 128", "ffn-width is 256 there and 128 here"},
      {"--kv-heads 4", "kv-heads is 8 there and 4 here"},
      {"--norm-eps 1e-6", "norm-eps is 1e-05 there and 1e-06 here"},
  };
  for (const auto& other : others) {
    const Ran ran = goes_on(other.flags);
    EXPECT_EQ(ran.code, 4) << ran.err;
    EXPECT_NE(ran.err.find(text("is of another model: ", other.told)), std::string::npos)
        << ran.err;
  }
}

/// A copy of the file that a run writes is not that run.
TEST(RunOptions, TheFileOfARunResumesNothing) {
  const Runs runs;
  runs.train("first", "--steps 1");
  runs.train("second", "--steps 2 --resume @/first --allow-changes");
  const std::string toml = read(runs.folder / "second/config.toml");
  EXPECT_NE(toml.find("resume = \"none\"\n"), std::string::npos) << toml;
  EXPECT_NE(toml.find("allow-changes = false\n"), std::string::npos) << toml;
  EXPECT_EQ(runs.command("train --config @/second/config.toml --output @/copy").code, 0);
  EXPECT_EQ(runs.losses("copy").size(), 3u) << "two steps and a validation";
}

/// The held-out part as a text of its own: the same training samples, the same validation.
TEST(RunOptions, ValidDataReplacesTheHeldOutPart) {
  const Runs runs;
  const std::string text = some_text().substr(0, 3000);
  runs.folder.write("a.txt", text.substr(0, 2700));
  runs.folder.write("b.txt", text.substr(2700));
  runs.folder.write("b257.txt", text.substr(2700, 257));
  runs.folder.write("odd.txt", "what? no such marks!");
  runs.train("cut", "--steps 4 --eval-every 2");
  const std::string apart = "train --preset gpt2-tiny --layers 1 --steps 4 --data @/a.txt ";
  EXPECT_EQ(runs.command(apart + "--eval-every 2 --valid-data @/b.txt --output @/own").code, 0);
  EXPECT_EQ(runs.losses("cut"), runs.losses("own"));
  EXPECT_EQ(runs.digest("cut"), runs.digest("own"));
  // A validation of one batch: 8 windows of 32, and the label of the last token.
  EXPECT_EQ(runs.command(apart + "--valid-data-path @/b257.txt --output @/short").code, 0);
  runs.train("one", "--steps 4 --eval-iters 1");
  EXPECT_EQ(runs.losses("one"), runs.losses("short"));
  EXPECT_NE(runs.losses("one").back(), runs.losses("cut").back());
  runs.train("many", "--steps 4 --eval-every 2 --eval-iters 1000");
  EXPECT_EQ(runs.losses("many"), runs.losses("cut"));

  const Ran odd = runs.command(apart + "--valid-data @/odd.txt --output @/x");
  EXPECT_EQ(odd.code, 3);
  EXPECT_NE(odd.err.find("in the validation text of"), std::string::npos) << odd.err;
  const Ran none = runs.command(apart + "--valid-data @/none.txt --output @/x");
  EXPECT_EQ(none.code, 3);
  // Without it a part of the data is held out again: other samples.
  const Ran other = runs.command(apart + "--output @/own --resume auto --steps 5");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("has seen other samples: valid-data is "), std::string::npos)
      << other.err;
}

/// The step that the link to the best checkpoint names, and that of the lowest validation loss.
std::pair<std::int64_t, std::int64_t> best_steps(const Runs& runs, const std::string& name) {
  const std::string link = runs.folder / (name + "/checkpoints/best");
  const Checkpoint linked = Checkpoint::open(link);
  std::pair<std::int64_t, double> best(-1, 1e30);
  for (const std::string& line : split(read(runs.folder / (name + "/metrics.jsonl")), '\n')) {
    if (line.empty()) continue;
    const Json json = Json::parse(line);
    if (json["kind"] == "valid" && json["loss"] < best.second) best = {json["step"], json["loss"]};
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  return {linked.record().step, best.first};
}

std::size_t checkpoints_of(const Runs& runs, const std::string& name) {
  return list_checkpoints(runs.folder / (name + "/checkpoints")).size();
}

/// A learning rate that falls apart after some steps: the best is none of the newest.
TEST(RunOptions, KeepBestStaysBesideTheNewest) {
  const Runs runs;
  const std::string flags =
      "--steps 24 --keep-last 1 --keep-best --eval-every 3 --save-every 4 --lr 2 "
      "--lr-warmup-steps 20 --lr-decay-style constant ";
  runs.train("whole", flags);
  const auto [linked, best] = best_steps(runs, "whole");
  EXPECT_EQ(linked, best);
  EXPECT_GT(best, 0);
  ASSERT_LT(best, 24) << "the last is the best: this test shows nothing";
  EXPECT_EQ(checkpoints_of(runs, "whole"), 3u) << "the best, the newest and the one before it";
  EXPECT_EQ(runs.command("inspect @/whole --verify").code, 0);
  EXPECT_EQ(runs.command("sample @/whole/checkpoints/best --tokens 3").code, 0);
  for (const std::string devices : {"1", "2"}) {
    const std::string name = "cut" + devices;
    runs.train(name, flags + "--exit-interval 13 --devices " + devices);
    EXPECT_EQ(
        runs.command("train --config @/" + name + "/config.toml --resume auto --exit-interval 0")
            .code,
        0);
    EXPECT_EQ(best_steps(runs, name).first, best_steps(runs, name).second);
    EXPECT_EQ(checkpoints_of(runs, name), 3u);
  }
  EXPECT_EQ(runs.digest("whole"), runs.digest("cut1"));
  runs.train("falling", "--steps 4 --keep-last 1 --keep-best --eval-every 1 --lr 0.001");
  EXPECT_EQ(best_steps(runs, "falling").first, best_steps(runs, "falling").second);
}

/// A later step than was asked for: what is said is true, and the new folder has the state.
/// A run with checkpoints that auto does not look at is not begun anew.
TEST(RunOptions, AutoTellsOfCheckpointsWithOtherNames) {
  const Runs runs;
  runs.train("iter", "--steps 2 --checkpoint-names iter");
  runs.train("step", "--steps 2");
  const std::string metrics = read(runs.folder / "iter/metrics.jsonl");
  const Ran step =
      runs.command(std::string(kTrainTiny) + "--steps 3 --output @/iter --resume auto");
  EXPECT_EQ(step.code, 4) << step.out;
  EXPECT_NE(step.err.find("iter/iter_0000002' exists; resume it with --checkpoint-names iter"),
            std::string::npos)
      << step.err;
  EXPECT_EQ(read(runs.folder / "iter/metrics.jsonl"), metrics);
  const Ran iter = runs.command(std::string(kTrainTiny) +
                                "--steps 3 --output @/step --resume auto --checkpoint-names iter");
  EXPECT_EQ(iter.code, 4) << iter.out;
  EXPECT_NE(
      iter.err.find("checkpoints/step-00000002' exists; resume it with --checkpoint-names step"),
      std::string::npos)
      << iter.err;
  runs.train("iter", "--steps 3 --resume auto --checkpoint-names iter");
}

TEST(RunOptions, NothingLeftToDoInANewFolder) {
  const Runs runs;
  runs.train("first", "--steps 4");
  const Ran ran = runs.command(text(kTrainTiny, "--steps 2 --resume @/first --output @/second"));
  EXPECT_NE(ran.out.find("done: step 4, beyond 2, "), std::string::npos) << ran.out;
  EXPECT_EQ(runs.digest("second"), runs.digest("first"));
}

TEST(RunOptions, ZeroStageStandsForTheSwitches) {
  const std::string plan =
      "plan --preset gpt2-tiny --vocab-size 64 --layers 1 --threads 1 "
      "--devices 2 --json ";
  const auto memory = [&](const std::string& flags) {
    const Ran ran = run(words(plan + flags));
    EXPECT_EQ(ran.code, 0) << ran.err;
    const Json json = Json::parse(ran.out);
    return text(json["memory"].dump(), json["sent_bytes_per_step"].dump(),
                json["collectives"].dump());
  };
  std::string before = memory("");
  EXPECT_EQ(memory("--zero-stage 0"), before);
  for (const std::string stage : {"1", "2", "3"}) {
    const std::string by_switch = memory("--zero-" + stage + "-memory-optimization");
    EXPECT_EQ(memory("--zero-stage " + stage), by_switch);
    EXPECT_EQ(memory("--zero-stage=" + stage + " --zero-" + stage + "-memory-optimization"),
              by_switch);
    before = by_switch;
  }
  EXPECT_EQ(memory("--zero-stage 3 --fsdp-memory-optimization"), before);
  for (const std::string flags : {"--zero-stage 1 --zero-3-memory-optimization",
                                  "--zero-stage 0 --fsdp-memory-optimization"}) {
    const Ran ran = run(words(plan + flags));
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find("disagree: both set what data parallel devices shard; give one"),
              std::string::npos)
        << ran.err;
  }
  EXPECT_EQ(run(words(plan + "--zero-stage 4")).code, 2);
  EXPECT_EQ(memory("--remote-device cpu"), memory("--offload-optimizer --offload-gradients"));
  EXPECT_NE(memory("--remote-device cpu --offload-parameters"), memory("--remote-device cpu"));
  EXPECT_EQ(memory("--checkpoint-activations"), memory("--recompute-granularity full"));
  EXPECT_EQ(memory("--recompute-granularity full --recompute-layers 0"),
            memory("--recompute-granularity full --checkpoint-activations"));
  EXPECT_EQ(memory("--recompute-granularity elementwise"), memory(""));
  EXPECT_NE(memory(""), memory("--recompute-granularity none"));
  EXPECT_EQ(memory("--no-graph-optimization"),
            memory("--no-graph-optimization --recompute-granularity elementwise"));
  EXPECT_NE(memory("--no-graph-optimization"),
            memory("--no-graph-optimization --recompute-granularity none"));
  for (const auto& [flags, says] : std::map<std::string, std::string>{
           {"--recompute-granularity selective --checkpoint-activations",
            "disagree: both set what backward recomputes; give one"},
           {"--memory-cap 10GX", "memory-cap is '10GX'; give bytes, as 10GiB"},
           {"--memory-cap 99999999999TiB", "memory-cap is '99999999999TiB', which is above 2^62"},
           {"--memory-cap 1e400", "memory-cap is '1e400', which is above 2^62 bytes"},
           {"--memory-cap 0", "memory-cap is '0'; give bytes"},
           {"--memory-cap 1kB", "memory-cap 1kB (1000 bytes) is below"},
           {"--remote-device disk", "remote-device is 'disk'; it can be none, cpu, nvme"},
           {"--remote-device nvme", "remote-device nvme needs a folder for its file"},
           {"--offload-folder .", "offload-folder . does nothing with remote-device none"},
           {"--recompute-granularity some",
            "recompute-granularity is 'some'; it can be none, elementwise, selective, full"},
           {"--fsdp-gather ever", "fsdp-gather is 'ever'; it can be use, block, step"},
           {"--recompute-granularity full --no-checkpoint-activations",
            "disagree: both set what backward recomputes; give one"},
           {"--remote-device cpu --no-offload-optimizer --no-offload-gradients",
            "with neither offload-optimizer nor offload-gradients offloads nothing"},
           {"--recompute-granularity none --recompute-layers 0",
            "does nothing with recompute-granularity none"}}) {
    const Ran ran = run(words(plan + flags));
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find(says), std::string::npos) << ran.err;
  }
  // A flag answers, whatever the file says.
  const Folder folder;
  folder.write("c.toml", "zero-stage = 3\nzero-1-memory-optimization = false\n");
  EXPECT_EQ(memory(folder.expand("--config @/c.toml")), before);
  EXPECT_EQ(memory(folder.expand("--config @/c.toml --zero-stage 1")), memory("--zero-stage 1"));
  EXPECT_EQ(memory(folder.expand("--config @/c.toml --zero-1-memory-optimization")),
            memory("--zero-stage 1"));
  // What is told to stay on the device stays there.
  EXPECT_EQ(memory("--remote-device cpu --no-offload-optimizer"), memory("--offload-gradients"));
  EXPECT_EQ(memory("--remote-device cpu --no-offload-gradients"), memory("--offload-optimizer"));
  folder.write("host.toml", "remote-device = \"cpu\"\noffload-optimizer = false\n");
  EXPECT_EQ(memory(folder.expand("--config @/host.toml")), memory("--offload-gradients"));
  EXPECT_EQ(memory(folder.expand("--config @/host.toml --remote-device none")), memory(""));
  folder.write("host.toml",
               "remote-device = \"cpu\"\noffload-optimizer = false\n"
               "offload-gradients = false\n");  // as runs write it
  EXPECT_EQ(memory(folder.expand("--config @/host.toml")), memory("--remote-device cpu"));
  EXPECT_EQ(memory(folder.expand("--config @/host.toml --no-offload-optimizer")),
            memory("--offload-gradients"));
  folder.write("again.toml",
               "recompute-granularity = \"full\"\ncheckpoint-activations = false\n"
               "recompute-layers = \"0\"\n");
  EXPECT_NE(memory(folder.expand("--config @/again.toml")), memory(""));
  EXPECT_EQ(memory(folder.expand("--config @/again.toml --no-checkpoint-activations")), memory(""));
  EXPECT_EQ(memory(folder.expand("--config @/again.toml --recompute-granularity none")),
            memory("--recompute-granularity none"));
  folder.write("drive.toml", "remote-device = \"nvme\"\noffload-folder = \"elsewhere\"\n");
  EXPECT_EQ(memory(folder.expand("--config @/drive.toml --remote-device cpu")),
            memory("--remote-device cpu"));
  EXPECT_EQ(memory(folder.expand("--config @/drive.toml --remote-device none")), memory(""));
  // Two lines of a file that contradict each other are as wrong as two flags, unless a flag
  // answers.
  folder.write("rivals.toml", "zero-stage = 1\nzero-3-memory-optimization = true\n");
  const Ran rivals = run(words(folder.expand(plan + "--config @/rivals.toml")));
  EXPECT_EQ(rivals.code, 2);
  EXPECT_EQ(
      rivals.err,
      folder.expand("error: zero-stage 1 in @/rivals.toml:1 and zero-3-memory-optimization true in "
                    "@/rivals.toml:2 disagree: both set what data parallel devices shard; "
                    "give one\n"));
  for (const std::string answer : {"--zero-stage 1", "--zero-3-memory-optimization"})
    EXPECT_EQ(memory(folder.expand("--config @/rivals.toml " + answer)), memory(answer));
  EXPECT_EQ(memory(folder.expand("--config @/rivals.toml --no-zero-3-memory-optimization")),
            memory("--zero-stage 1"));
  // As runs record them.
  folder.write("run.toml", "zero-stage = 0\nzero-3-memory-optimization = true\n");
  EXPECT_EQ(memory(folder.expand("--config @/run.toml")), memory("--zero-stage 3"));
  folder.write("same.toml", "zero-stage = 3\nfsdp-memory-optimization = true\n");
  EXPECT_EQ(memory(folder.expand("--config @/same.toml")), memory("--zero-stage 3"));
}

}  // namespace
}  // namespace tessera
