/// What a user reads who gave something wrong: golden messages and exit codes.

#include "apps/command_test.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/hints.h"
#include "tessera/models/family.h"

namespace tessera {
namespace {

struct Case {
  const char* name;
  const char* arguments;  // @ is the test's folder
  int code;
  std::string message;
};

/// The names of all families.
std::string known_families() {
  std::vector<std::string_view> out;
  for (const ModelFamily* const family : model_families()) out.push_back(family->name);
  return join(out);
}

// Valid but for what the row says.
constexpr const char* kTiny = "train --preset gpt2-tiny --output @/new --steps 2 ";

const Case kCases[] = {
    {"a text that is not there", "--data @/txet.txt", 3,
     "no file '@/txet.txt'; near names in '@': text.txt, empty.txt, short.txt"},
    {"a folder without texts", "--data @/empty", 3,
     "folder '@/empty' has no text files; hidden files are ignored"},
    {"an empty text", "--data @/empty.txt", 3,
     "text file '@/empty.txt' is empty; give a file with text"},
    {"a text that is not UTF-8", "--data @/latin.txt", 3,
     "text file '@/latin.txt', line 1, byte offset 3: byte 0xe9 is not UTF-8; convert the file to "
     "UTF-8, or leave it out"},
    {"a link to nothing", "--data @/broken", 3,
     "no file '@/broken'; it is a link to 'nowhere', which does not exist"},
    {"a number nearer to 0 than any", "--data @/text.txt --lr 1e-400", 2,
     "--lr is 1e-400, which is closer to 0 than 64 bits can hold; give 0, or a number like 1e-300"},
    {"no data", "", 2, "data is missing; give a text file, like --data input.txt"},
    {"a context that is longer than the data", "--data @/text.txt --context 5000", 3,
     "context 5000 is longer than the data: a sample takes 5001 tokens (one more for the last "
     "label) but the training text has 2703; use a longer text, or a context of at most 2702"},
    {"a text of three letters: too short for both parts", "--data @/short.txt", 3,
     "2 problems, nothing was started:\n  context 32 is longer than the data: a sample takes 33 "
     "tokens (one more for the last label) but the training text has 2; use a longer text, or a "
     "context of at most 1\n  the held-out part has 1 token but validation needs at least 2 (one "
     "and its label); use a longer text or hold out more of it\n      held-out is 0.1; give 0 to "
     "hold nothing out, or valid-data to validate on another text"},
    {"heads that do not divide the width", "--data @/text.txt --heads 7", 2,
     "heads 7 do not divide the width 64; nearest widths are 63 and 70"},
    {"key-value heads that do not divide the heads", "--data @/text.txt --kv-heads 3", 2,
     "kv-heads 3 do not divide heads 8; choose a divisor of 8"},
    {"batch sizes that do not divide", "--data @/text.txt --micro-batch-size 3", 2,
     "micro-batch-size 3 does not divide global-batch-size 8; nearest are micro-batch-size 2 or "
     "4, or global-batch-size 6 or 9"},
    {"fewer samples than devices", "--data @/text.txt --devices 16", 2,
     "global-batch-size 8 is less than the 16 data parallel devices, some of which would have no "
     "sample; give at least 16, or fewer devices"},
    {"a micro-batch that devices cannot share",
     "--data @/text.txt --devices 2 --micro-batch-size 3", 2,
     "micro-batch-size 3 x 2 data parallel devices does not divide global-batch-size 8; "
     "micro-batch-size can be 1, 2, 4"},
    {"micro-batches of unequal shares",
     "--data @/text.txt --devices 4 --global-batch-size 6 --micro-batch-size 1", 2,
     "micro-batch-size 1 x 4 data parallel devices does not divide global-batch-size 6; "
     "micro-batches need equal shares: give micro-batch-size 0, or global-batch-size 4 or "
     "8"},
    {"more heads than channels", "--data @/text.txt --heads 1000000000", 2,
     "heads 1000000000 are more than the width 64; choose heads that divide the width"},
    {"a micro-batch above the batch", "--data @/text.txt --micro-batch-size 16", 2,
     "micro-batch-size 16 is above global-batch-size 8; lower the first or raise the second"},
    {"a preset that is misspelled", "--data @/text.txt --preset gpt2-tinny", 2,
     "unknown preset 'gpt2-tinny'; nearest: gpt2-tiny, gpt2-small"},
    {"a flag that is misspelled", "--data @/text.txt --stesp 5", 2,
     "unknown flag --stesp; nearest is --steps"},
    {"a flag of another program", "--data @/text.txt --learning_rate 1", 2,
     "unknown flag --learning_rate; use --lr"},
    {"a flag like nothing else", "--data @/text.txt --zzzzzzzzzzzz", 2,
     "unknown flag --zzzzzzzzzzzz; --help lists them"},
    {"a word that belongs to no flag", "word --data @/text.txt", 2,
     "unexpected 'word'; flags begin with --, as in --data word"},
    {"a flag without its value", "--data @/text.txt --seed", 2, "--seed needs a value: --seed N"},
    {"a share above 1", "--data @/text.txt --dropout 1.5", 2,
     "dropout is 1.5; it must be at least 0 and less than 1"},
    {"a negative count", "--data @/text.txt --exit-interval -3", 2,
     "--exit-interval is -3; it must be a whole number of at least 0"},
    {"a fraction of steps", "--data @/text.txt --save-every 1.5", 2,
     "--save-every is '1.5'; it must be a whole number, like 100"},
    {"not a number", "--data @/text.txt --lr nan", 2,
     "--lr is nan; it must be a finite number, like 0.1"},
    {"a number that no double holds", "--data @/text.txt --lr 1e400", 2,
     "--lr is 1e400; it must be a finite number, like 0.1"},
    {"a negative rate", "--data @/text.txt --lr -1", 2,
     "lr is -1; it must be at least 0 and at most 1e+30"},
    {"a choice that there is not", "--data @/text.txt --optimizer adamax", 2,
     text("--optimizer is 'adamax'; known are ", join(kOptimizerNames))},
    {"a family that there is not", "--data @/text.txt --family gtp2", 2,
     text("unknown model family 'gtp2'; known are ", known_families())},
    {"a vocabulary smaller than the data's", "--data @/text.txt --vocab-size 5", 2,
     "vocab-size 5 is less than the 16 characters of the data; give 0 or at least 16"},
    {"a vocabulary without room for special tokens",
     "--data @/text.txt --preset bert-tiny --vocab-size 19", 2,
     "vocab-size 19 is less than the 16 characters of the data and the 4 special tokens of family "
     "bert; give 0 or at least 20"},
    {"samples without room for two parts, and more masked positions than there are",
     "--data @/text.txt --preset bert-tiny --context 4 --masked-positions 5", 2,
     "2 problems, nothing was started:\n  context is 4; a sample of bert has [CLS], two [SEP] and "
     "a "
     "token for each of two parts, so give at least 5\n  masked-positions is 5; it must be from 0 "
     "to "
     "the context of 4"},
    {"text samples of a model that writes none",
     "--data @/text.txt --preset bert-tiny --context 8 --sample-every 5", 2,
     "sample-every 5 does nothing with family bert, which writes no text; give sample-every 0"},
    {"training for a machine that is only described", "--data @/text.txt --machine a100-1024", 2,
     "machine a100-1024 is only described: its plans have no kernels and cannot run; leave "
     "--machine out, or give a machine file with kernels = \"cpu\""},
    {"two names of one field disagree", "--data @/text.txt --seq-length 8 --context 16", 2,
     "--seq-length 8 and --context 16 disagree: both set context; give one"},
    {"an output that holds another run", "--data @/text.txt --output @/old", 2,
     "output '@/old' holds another run (metrics.jsonl, summary.json); resume it with --resume "
     "auto, replace it with --overwrite, or give a new folder"},
    {"an output that is a file", "--data @/text.txt --output @/text.txt", 5,
     "output '@/text.txt' is a file; give a folder"},
    {"a folder for offloaded tensors that is not there",
     "--data @/text.txt --remote-device nvme --offload-folder @/absent", 2,
     "offload-folder '@/absent' does not exist; give an existing folder on the drive for offloaded "
     "tensors"},
    {"one that is a file", "--data @/text.txt --remote-device nvme --offload-folder @/text.txt", 2,
     "offload-folder '@/text.txt' is not a folder; give an existing folder on the drive for "
     "offloaded tensors"},
    {"layers to recompute, and no recomputing",
     "--data @/text.txt --recompute-granularity none --recompute-layers 0", 2,
     "recompute-layers 0 does nothing with recompute-granularity none; give elementwise, selective "
     "or full, or recompute-layers all"},
    {"a checkpoint that is not there", "--data @/text.txt --resume @/nothing", 4,
     "no checkpoint '@/nothing'; nothing in '@' has a name like it"},
    {"a configuration file that is not there", "--data @/text.txt --config @/nothing.toml", 2,
     "no file '@/nothing.toml'; nothing in '@' has a name like it"},
    {"a configuration file with an unknown key", "--data @/text.txt --config @/key.toml", 2,
     "unknown key leyers in @/key.toml:2; nearest is layers"},
    {"a configuration file with bad syntax", "--data @/text.txt --config @/syntax.toml", 2,
     "@/syntax.toml:2:10: Error while parsing value: could not determine value type"},
};

TEST(Messages, OfTrain) {
  const Folder folder;
  folder.write("text.txt", some_text());
  folder.write("short.txt", "abc");
  folder.write("empty.txt", "");
  folder.write("latin.txt", "caf\xE9 au lait\n");
  folder.write("key.toml", "[model]\nleyers = 3\n");
  folder.write("syntax.toml", "steps = 3\nlayers = = 4\n");
  std::filesystem::create_directory(folder / "empty");
  std::filesystem::create_symlink("nowhere", folder / "broken");
  std::filesystem::create_directory(folder / "old");
  folder.write("old/metrics.jsonl", "");
  folder.write("old/summary.json", "{}");
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    std::string line = kTiny;
    for (const char* flag : {"--output", "--preset"}) {  // told by the row
      if (std::string(c.arguments).find(flag) != std::string::npos) {
        const std::size_t at = line.find(flag);
        line.erase(at, line.find("--", at + 2) - at);
      }
    }
    const Ran ran = run(words(folder.expand(line + c.arguments)));
    EXPECT_EQ(ran.code, c.code);
    EXPECT_EQ(ran.err, "error: " + folder.expand(c.message) + "\n");
    EXPECT_EQ(ran.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder / "new")) << "something was written";
  }
}

/// Rows of a name that is a flag are never read, and those of a flag that is none mislead.
TEST(Messages, HintsAreOfUnknownNamesAndNameKnownFlags) {
  std::string help;
  for (const char* command : {"train", "sample"}) help += run({command, "--help"}).out;
  for (const KnownHint& hint : known_hints()) {
    EXPECT_EQ(find_field(hint.name).field, nullptr) << hint.name << " is a flag";
    const bool known = hint.meant.empty() || find_field(hint.meant).field != nullptr ||
                       help.find(text("--", hint.meant, " ")) != std::string::npos;
    EXPECT_TRUE(known) << hint.name << " means " << hint.meant;
  }
  for (const char* flag : {"--max-new-tokens", "--num-tokens"}) {
    const Ran ran = run({"train", flag, "8"});
    EXPECT_NE(ran.err.find("use tessera sample --tokens"), std::string::npos) << ran.err;
  }
}

/// A TOML value has the type of its field: what looks like another one is most likely a mistake.
TEST(Messages, OfTypesInAConfigurationFile) {
  const std::pair<const char*, const char*> cases[] = {
      {"steps = 3.0",
       "steps in @/c.toml:1 is a number with a fraction or an exponent; it must be a "
       "whole number, like 100"},
      {"steps = [3]", "steps in @/c.toml:1 is a list; it must be a whole number, like 100"},
      {"steps = true", "steps in @/c.toml:1 is true or false; it must be a whole number, like 100"},
      {"lr = \"0.1\"", "lr in @/c.toml:1 is text in quotes; it must be a number, like 0.1"},
      {"bias = \"true\"", "bias in @/c.toml:1 is text in quotes; it must be true or false"},
      {"bias = 1", "bias in @/c.toml:1 is a whole number; it must be true or false"},
      {"optimizer = 1", "optimizer in @/c.toml:1 is a whole number; it must be text in quotes"},
      {"data = [1]", "data in @/c.toml:1 is a list; it must be a list of texts in quotes"},
  };
  const Folder folder;
  const std::string text_file = folder.write("text.txt", some_text());
  for (const auto& [toml, message] : cases) {
    folder.write("c.toml", text(toml, "\n"));
    const Ran ran = run(words(folder.expand(
        "train --preset gpt2-tiny --output @/new --data @/text.txt --config @/c.toml")));
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err, "error: " + folder.expand(message) + "\n");
  }
  folder.write("c.toml", "data = \"" + text_file + "\"\nlr = 1\n");
  EXPECT_EQ(run(words(folder.expand(
                    "train --preset gpt2-tiny --output @/new --steps 0 --config @/c.toml")))
                .code,
            0);
}

TEST(Messages, SeveralProblemsAreToldAtOnce) {
  const Folder folder;
  const Ran ran = run(words(folder.expand(
      "train --preset gpt2-tiny --data @/no.txt --output @/new --stesp 5 --steps -3 --heads 7 "
      "--dropout 1.5 --micro-batch-size 3")));
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err,
            folder.expand("error: 6 problems, nothing was started:\n"
                          "  unknown flag --stesp; nearest is --steps\n"
                          "  --steps is -3; it must be a whole number of at least 0\n"
                          "  heads 7 do not divide the width 64; nearest widths are 63 and 70\n"
                          "  dropout is 1.5; it must be at least 0 and less than 1\n"
                          "  micro-batch-size 3 does not divide global-batch-size 8; nearest are "
                          "micro-batch-size 2 or "
                          "4, or global-batch-size 6 or 9\n"
                          "  no file '@/no.txt'; nothing in '@' has a name like it\n"));
}

/// A file of something else: its first keys are told, with names like theirs, and how many there
/// are.
TEST(Messages, OfManyUnknownKeys) {
  const Folder folder;
  std::string keys;
  for (int i = 0; i < 100'000; ++i) keys += text("layrs-", 100'000 + i, " = 1\n");
  folder.write("keys.toml", keys);
  folder.write("text.txt", some_text());
  const Ran ran =
      run(words(folder.expand("train --data @/text.txt --output @/new --config @/keys.toml")));
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find(folder.expand("unknown key layrs-100019 in @/keys.toml:20")),
            std::string::npos);
  EXPECT_EQ(ran.err.find("layrs-100020 "), std::string::npos);
  EXPECT_NE(ran.err.find("and 99980 more unknown keys; is this a file of a run?"),
            std::string::npos)
      << ran.err;
}

TEST(Messages, OfResume) {
  const Folder folder;
  folder.write("text.txt", some_text());
  folder.write("other.txt", some_text() + "line");
  const std::string train = "train --preset gpt2-tiny --heads 4 --output @/run ";
  ASSERT_EQ(run(words(folder.expand(train + "--data @/text.txt --steps 2 --layers 1"))).code, 0);
  const Case cases[] = {
      {"another model", "--steps 2 --data @/text.txt --resume auto --layers 2 --width 32", 4,
       "checkpoint '@/run/checkpoints/step-00000002' is of another model: layers is 1 there and 2 "
       "here; width is 64 there and 32 here; give the same, "
       "as with --config @/run/config.toml --resume auto, or start a new run without --resume"},
      {"other samples",
       "--steps 2 --layers 1 --data @/text.txt --resume auto --seed 2 --global-batch-size 4", 2,
       "checkpoint '@/run/checkpoints/step-00000002' has seen other samples: seed is 1 there and 2 "
       "here; global-batch-size is 8 there and 4 here; give the same, as with "
       "--config @/run/config.toml --resume auto, or add --allow-changes"},
      {"no resume", "--data @/text.txt --steps 2 --layers 1", 2,
       "output '@/run' holds another run (metrics.jsonl, summary.json, checkpoints); resume it "
       "with --resume auto, replace it with --overwrite, or give a new folder"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Ran ran = run(words(folder.expand(train + c.arguments)));
    EXPECT_EQ(ran.code, c.code);
    EXPECT_EQ(ran.err, "error: " + folder.expand(c.message) + "\n");
  }
  const Ran other = run(words(folder.expand(
      train + "--steps 2 --layers 1 --resume auto --data @/other.txt --dropout 0.1")));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("has seen other samples: the data's digest is "), std::string::npos)
      << other.err;
  // Data to validate on decides which checkpoint is the best.
  const std::string apart =
      "train --preset gpt2-tiny --heads 4 --data @/text.txt --steps 2 --layers 1 --valid-data "
      "@/v.txt ";
  folder.write("v.txt", some_text());
  ASSERT_EQ(run(words(folder.expand(apart + "--output @/apart"))).code, 0);
  EXPECT_EQ(run(words(folder.expand(apart + "--output @/apart --resume auto"))).code, 0);
  folder.write("v.txt", some_text() + "line");
  const Ran valid = run(words(folder.expand(apart + "--output @/apart --resume auto")));
  EXPECT_EQ(valid.code, 2);
  EXPECT_NE(valid.err.find("has seen other samples: the digest of valid-data is "),
            std::string::npos)
      << valid.err;
  const Ran taken =
      run(words(folder.expand(apart + "--output @/apart --resume auto --allow-changes")));
  EXPECT_EQ(taken.code, 0) << taken.err;
  // Also if the checkpoint's vocabulary lacks a letter of it; other problems are told beside it.
  folder.write("letters.txt", some_text() + "QUX");
  const std::string letters = train + "--steps 2 --resume auto --data @/letters.txt ";
  const Ran unknown = run(words(folder.expand(letters + "--layers 1 --width 30")));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("has seen other samples: the data's digest is "), std::string::npos)
      << unknown.err;
  EXPECT_NE(unknown.err.find("heads 4 do not divide the width 30"), std::string::npos)
      << unknown.err;
  EXPECT_EQ(unknown.err.find("vocabulary"), std::string::npos) << unknown.err;
  const Ran both = run(words(folder.expand(letters + "--layers 2 --allow-changes")));
  EXPECT_EQ(both.code, 4);
  EXPECT_NE(both.err.find("is of another model: layers is 1 there and 2 here"), std::string::npos)
      << both.err;
  EXPECT_NE(both.err.find("not in the vocabulary"), std::string::npos) << both.err;
  const Ran allowed =
      run(words(folder.expand(train + "--data @/text.txt --resume auto --steps 3 --layers 1 "
                                      "--allow-changes --seed 2 --dropout 0.1")));
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  EXPECT_NE(allowed.out.find("notice: resuming with a change: seed is 1 there and 2 here\n"),
            std::string::npos)
      << allowed.out;
  EXPECT_NE(allowed.out.find("notice: resuming with a change: dropout is 0 there and 0.1 here\n"),
            std::string::npos)
      << allowed.out;
}

TEST(Messages, OfOtherCommands) {
  const Folder folder;
  const Case cases[] = {
      {"a command that is misspelled", "trian", 2, "unknown command 'trian'; nearest: train"},
      {"a command like nothing else", "zzzzzzzzz", 2,
       "unknown command 'zzzzzzzzz'; commands are train, sample, chat, serve, predict, evaluate, "
       "verify, "
       "plan, bench, prepare, "
       "preprocess_data, score, export, merge-adapter, inspect, chart, report, doctor, launch, "
       "version, help"},
      {"no checkpoint to sample from", "sample", 2,
       "checkpoint is missing; give a run, a checkpoint or a folder of Hugging Face, like tessera "
       "sample runs/first"},
      {"numbers of sample", "sample @/x --tokens 0 --temperature -1 --top-k -2", 2,
       "3 problems, nothing was started:\n  --tokens is 0; it must be 1 or more\n  --temperature "
       "is -1; it must be at least 0 (the most likely token) and at most 100\n  --top-k is -2; it "
       "must be 0 (all) or more"},
      {"a plan without vocabulary", "plan --preset gpt2-tiny", 2,
       "vocab-size is 0, which takes it from the data, and no data is given; give --data FILE or "
       "--vocab-size N"},
      {"nothing to inspect", "inspect", 2,
       "inspect takes one PATH, not 0; give the folder of a run or a checkpoint"},
      {"an inspected path that is not there", "inspect @/x", 4,
       "nothing at '@/x'; nothing in '@' has a name like it"},
      {"a prepare that lacks all", "prepare", 2,
       "2 problems, nothing was started:\n  output is missing; give the text file to write, like "
       "--output corpus.txt\n  no source; give text files, folders, or a corpus by name: kjv, "
       "licences"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Ran ran = run(words(folder.expand(c.arguments)));
    EXPECT_EQ(ran.code, c.code);
    EXPECT_EQ(ran.err, "error: " + folder.expand(c.message) + "\n");
    EXPECT_EQ(ran.out, "");
  }
}

}  // namespace
}  // namespace tessera
