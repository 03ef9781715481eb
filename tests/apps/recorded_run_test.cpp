/// Checkpoints whose bytes are intact and say nonsense: judged by the code that judges flags.

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "tessera/base/hash.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/machines/machine_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainRecorded =
    "train --preset llama-tiny --layers 1 --data @/text.txt --threads 1 ";

/// Changes a manifest, which is given the hash that fits.
void change(const std::string& path, const std::function<void(Manifest&)>& how) {
  Manifest manifest = parse_manifest(read(path), path);
  how(manifest);
  std::ofstream(path, std::ios::binary) << to_text(manifest);
}

void set_field(Manifest& manifest, const std::string& name, const std::string& value) {
  std::string& config = manifest.record.texts.at("config");
  nlohmann::json fields = nlohmann::json::parse(config);
  ASSERT_TRUE(fields.contains(name)) << name;
  fields[name] = value;
  config = fields.dump(1);
}

/// Overwrites a tensor of 8 bytes, with all hashes that fit.
void set_counter(const std::string& folder, const std::string& name, std::int64_t value) {
  const std::string path = folder + "/" + kManifestName;
  change(path, [&](Manifest& manifest) {
    for (ManifestTensor& tensor : manifest.tensors) {
      if (tensor.entry.name != name) continue;
      ManifestSlice& slice = tensor.slices.at(0);
      ManifestFile& file = manifest.files.at(slice.file);
      std::string bytes = read(folder + "/" + file.name);
      std::memcpy(bytes.data() + slice.at, &value, sizeof value);
      std::ofstream(folder + "/" + file.name, std::ios::binary) << bytes;
      slice.blocks.at(0) = hash128_text(std::as_bytes(std::span(&value, 1)));
      file.hash = hash128_text(std::as_bytes(std::span(bytes)));
      return;
    }
    FAIL() << "no counter " << name;
  });
}

struct RecordedRunTest : testing::Test {
  void SetUp() override {
    folder.write("text.txt", some_text());
    const Ran trained = run(words(
        folder.expand(kTrainRecorded + std::string("--output @/good --steps 4 --save-every 2"))));
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  /// A copy of the run of which the newest checkpoint may be damaged.
  std::string copy() {
    fs::remove_all(folder / "run");
    fs::copy(folder / "good", folder / "run", fs::copy_options::recursive);
    return folder / "run/checkpoints/step-00000004";
  }
  /// Every command that reads it ends with code 4 and names the file; going on takes an older one.
  void expect_refused(const std::string& checkpoint, const std::string& message) {
    const std::string resume =
        folder.expand(kTrainRecorded + std::string("--output @/other --steps 5 "));
    for (const Arguments& command :
         {Arguments{"sample", checkpoint, "--tokens", "3"}, Arguments{"inspect", checkpoint},
          Arguments{"inspect", checkpoint, "--verify"}, words(resume + "--resume " + checkpoint)}) {
      SCOPED_TRACE(join(command, " "));
      const Ran ran = run(command);
      EXPECT_EQ(ran.code, 4) << ran.err;
      EXPECT_NE(ran.err.find(checkpoint + "/manifest.json'"), std::string::npos) << ran.err;
      EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
      EXPECT_EQ(ran.err.find(message, ran.err.find(message) + 1), std::string::npos) << ran.err;
    }
    EXPECT_FALSE(fs::exists(folder / "other"));
  }

  const Folder folder;
};

TEST_F(RecordedRunTest, AConfigurationThatNoFlagsCouldGive) {
  struct Case {
    const char *field, *value, *message;
  };
  const Case cases[] = {
      {"heads", "0", "heads is 0; it must be 1 or more"},
      {"heads", "-4", "heads is -4; it must be 1 or more"},
      {"width", "63", "the width 63"},
      {"layers", "1000000000", "layers is 1000000000; it must be at most 100000"},
      {"layers", "5000", "layers is 5000, but it has"},
      {"family", "nonsense", "unknown model family 'nonsense'"},
      {"vocab-size", "0", "vocab-size is 0"},
      {"vocab-size", "3", "its vocabulary has"},
      {"family", "bert", "task is 'causal_lm', which family bert does not support"},
      {"task", "nonsense", "task is 'nonsense', which family llama does not support"},
      {"dropout", "nan", "dropout"},
      {"steps", "many", "steps"},
      {"tensor-model-parallel-size", "0", "tensor-model-parallel-size"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(text(c.field, " = ", c.value));
    const std::string checkpoint = copy();
    change(checkpoint + "/manifest.json",
           [&](Manifest& manifest) { set_field(manifest, c.field, c.value); });
    expect_refused(checkpoint, c.message);
  }
}

/// A later version may read a tokenizer otherwise: then the same text is other samples.
TEST_F(RecordedRunTest, OtherIdsOfTheSameTextAreOtherSamples) {
  const std::string manifest = copy() + "/manifest.json";
  const std::string resume =
      folder.expand(kTrainRecorded + std::string("--output @/run --steps 5 --resume auto"));
  std::string ids;
  change(manifest, [&](Manifest& m) {
    ids = m.record.texts.at("ids");
    m.record.texts["ids"] = std::string(ids.size(), '0');
  });
  const Ran refused = run(words(resume));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find(text("has seen other samples: the digest of ids of the same text is ",
                                  std::string(ids.size(), '0'), " there and ", ids, " here")),
            std::string::npos)
      << refused.err;
  const Ran allowed = run(words(resume + " --allow-changes"));
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  EXPECT_NE((allowed.out + allowed.err).find("resuming with a change: the digest of ids"),
            std::string::npos);
  // Checkpoints of earlier versions have none.
  change(copy() + "/manifest.json", [](Manifest& m) { m.record.texts.erase("ids"); });
  EXPECT_EQ(run(words(resume)).code, 0);
}

TEST_F(RecordedRunTest, StepsSamplesAndTexts) {
  const struct {
    const char* name;
    std::function<void(Manifest&)> how;
    const char* message;
  } cases[] = {
      {"a step that no run reaches",
       [](Manifest& m) { m.record.step = std::numeric_limits<std::int64_t>::max(); },
       "its step 9223372036854775807 is above 1000000000000000"},
      {"other samples than the state's", [](Manifest& m) { m.record.samples += 1; },
       "its counter 'data.samples' is "},
      {"a vocabulary that is none", [](Manifest& m) { m.record.texts["vocabulary"] = "{}"; },
       "not a vocabulary file"},
      {"a configuration that is none", [](Manifest& m) { m.record.texts["config"] = "[1]"; },
       "its configuration is not a list of texts"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string checkpoint = copy();
    change(checkpoint + "/manifest.json", c.how);
    expect_refused(checkpoint, c.message);
  }
  const std::string checkpoint = copy();
  set_counter(checkpoint, "data.samples", -1);
  expect_refused(checkpoint, "its counter 'data.samples' is -1 but ");
}

TEST_F(RecordedRunTest, GoingOnTakesTheOneBefore) {
  const std::string checkpoint = copy();
  change(checkpoint + "/manifest.json",
         [&](Manifest& manifest) { set_field(manifest, "heads", "0"); });
  const Ran ran = run(words(folder.expand(
      kTrainRecorded + std::string("--output @/run --steps 4 --save-every 2 --resume auto"))));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("step-00000004' is skipped: "), std::string::npos) << ran.out;
  EXPECT_EQ(run({"inspect", folder / "run/checkpoints/step-00000004.1", "--digest"}).out,
            run({"inspect", folder / "good", "--digest"}).out);
}

/// The machine says where a run was; to read what it left, none is needed.
TEST(RecordedRun, ItsMachineFileMayBeGone) {
  const Folder folder;
  folder.write("text.txt", some_text());
  Machine machine;
  machine.name = "m";
  const std::string file = folder.write("m.toml", machine_file_text(machine));
  const std::string train = folder.expand(kTrainRecorded);
  const Ran trained =
      run(words(train + folder.expand("--output @/run --steps 2 --machine ") + file));
  ASSERT_EQ(trained.code, 0) << trained.err;
  fs::remove(file);
  for (const std::string& line :
       {std::string("sample @/run --tokens 3"), std::string("inspect @/run --verify"),
        std::string("export @/run/checkpoints/step-00000002 --output @/exported"),
        std::string("report @/run --output @/report.html"),
        train + "--output @/run --steps 3 --resume auto",
        train + "--output @/next --steps 1 --init-from @/run"}) {
    const Ran ran = run(words(folder.expand(line)));
    EXPECT_EQ(ran.code, 0) << line << "\n" << ran.err;
    EXPECT_EQ((ran.out + ran.err).find("m.toml"), std::string::npos) << ran.out << ran.err;
  }
  const Ran sampled = run(words(folder.expand("sample @/run --machine a100-1024")));
  EXPECT_EQ(sampled.err.find("error: machine a100-1024 is only described"), 0U) << sampled.err;
  // A run that names it again needs it.
  const Ran again =
      run(words(folder.expand(train + "--output @/run --resume auto --machine " + file)));
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("m.toml' is neither a known machine nor a file"), std::string::npos)
      << again.err;
}

/// Weights that were trained before a change of what they mean fit by name and shape alone.
TEST(RecordedRun, WeightsOfAnotherMeaningAreRefused) {
  const Folder folder;
  folder.write("pairs.txt", "ab\tBA\nba\tAB\n");
  const std::string train = folder.expand(
      "train --family transformer --layers 1 --width 16 --heads 2 --context 4 --threads 1 "
      "--data @/pairs.txt --held-out 0 --steps 1 ");
  for (const bool sines : {true, false}) {
    const std::string flags = train + (sines ? "--sinusoidal-positions " : "");
    const std::string output = folder / (sines ? "sines" : "learned");
    ASSERT_EQ(run(words(flags + "--output " + output)).code, 0);
    EXPECT_EQ(run({"sample", output, "--prompt", "ab"}).code, 0);
    change(output + "/checkpoints/step-00000001/" + kManifestName,
           [](Manifest& manifest) { manifest.record.texts.erase("changes"); });
    for (const std::string& line :
         {"sample " + output + " --prompt ab", flags + "--resume auto --output " + output,
          flags + "--output " + folder / "new" + " --init-from " + output}) {
      const Ran ran = run(words(line));
      EXPECT_EQ(ran.code, sines ? 4 : 0) << line << "\n" << ran.err;
      if (!sines) continue;
      EXPECT_NE(ran.err.find("that mean something else in this version of Tessera: embeddings "
                             "are multiplied by sqrt(width) where positions are sines; use the "
                             "version that trained them, or train again"),
                std::string::npos)
          << ran.err;
    }
  }
  const Ran shown = run({"inspect", folder / "sines"});
  EXPECT_EQ(shown.code, 4);
  EXPECT_EQ(shown.err.find("damaged"), std::string::npos) << shown.err;
}

}  // namespace
}  // namespace tessera
