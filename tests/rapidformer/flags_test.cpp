/// What flags become, and what is said of those that are wrong.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/rapidformer/flag_table.h"
#include "tessera/rapidformer/given_flags.h"
#include "tessera/rapidformer/request.h"

namespace tessera {
namespace {

using Environment = std::map<std::string, std::string>;

Arguments words_of(std::string_view line) {
  Arguments out;
  for (const std::string& word : split(line, ' ')) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

AskedTraining asked(std::string_view line, const Environment& environment = {}) {
  return read_rapidformer_flags(words_of(line), FlagsOf::Command, [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

std::string field_text(const AskedTraining& asked, std::string_view name) {
  return get_text(*find_field(name).field, asked.config);
}

/// All problems, a line each.
std::string problems_of(const AskedTraining& asked) {
  std::string out;
  for (const Error& problem : asked.problems.list()) out += text(problem.what(), "\n");
  return out;
}

const char* const kPretrain =
    "--task pretraining --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
    "--micro-batch-size 1 --global-batch-size 8 --seq-length 64 --max-position-embeddings 128 "
    "--tokenizer-type GPT2BPETokenizer --vocab-file v.json --merge-file m.txt --train-iters 10 "
    "--lr 1e-3 --save s --train-data-path d ";

/// Nothing of the seed's or of Megatron-LM's is read by chance.
TEST(FlagTable, RowsAreOnceAndNameFields) {
  std::map<std::string_view, int> seen;
  for (const FlagRow& row : flag_rows()) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_EQ(++seen[row.name], 1);
    const bool named = !row.field.empty() && row.field != "tensorboard-dir";
    EXPECT_TRUE(!named || find_field(row.field).field != nullptr) << row.field;
    const bool speaks = row.kind == FlagKind::Refused || row.kind == FlagKind::Idle ||
                        row.kind == FlagKind::Only || row.kind == FlagKind::Always;
    EXPECT_TRUE(!speaks || !row.note.empty()) << "no reason";
  }
}

TEST(RapidformerFlags, BecomeFields) {
  struct Case {
    const char *flags, *field, *value;
  };
  const Case kCases[] = {
      {"", "context", "64"},
      {"", "positions", "128"},
      {"", "family", "gpt2"},
      {"", "steps", "10"},
      {"", "seed", "1234"},  // Megatron-LM's defaults
      {"", "lr-decay-style", "linear"},
      {"", "dropout", "0.1"},
      {"", "eval-every", "1000"},
      {"", "output", "s"},
      {"", "checkpoint-names", "iter"},
      {"--seed 7", "seed", "7"},
      {"--lr-warmup-fraction .01 --lr-decay-iters 2000", "lr-warmup-steps", "20"},  // not of 10
      {"--lr-warmup-fraction .2", "lr-warmup-steps", "2"},
      {"--lr-decay-iters 2000", "lr-decay-steps", "2000"},
      {"--hidden-dropout 0", "dropout", "0"},
      {"--hidden-dropout 0", "attention-dropout", "0.1"},
      {"--attention-dropout 0", "dropout", "0.1"},
      {"--attention-dropout 0", "attention-dropout", "0"},
      {"--optimizer adam", "optimizer", "adamw"},
      {"--untie-embeddings-and-output-weights", "tied-head", "false"},
      {"--num-virtual-stages-per-pipeline-rank 2", "pipeline-schedule", "interleaved"},
      {"--oss-memory-optimization", "zero-1-memory-optimization", "true"},
      {"--oss-sdp-memory-optimization", "zero-2-memory-optimization", "true"},
      {"--recompute-activations", "recompute-granularity", "selective"},
      {"--distributed-timeout-minutes 10", "distributed-timeout", "600"},
      {"--mask-prob .15 --short-seq-prob 0.10", "steps", "10"},  // as numbers
      {"--vocab-extra-ids 100", "vocab-extra-ids", "100"},
      {"--load s --finetune", "init-from", "s"},
      {"--num-experts 4", "family", "mixtral"},
      {"--num-experts 4 --moe-router-topk 1", "moe-router-topk", "1"},
      {"--num-experts 4 --moe-loss-coeff 0.01", "moe-aux-loss-coeff", "0.01"},
      {"--num-experts 4 --mlp-type residual", "moe-use-residual", "true"},
      {"--num-experts 4 --use-expert-residual-network --disable-moe-token-dropping",
       "moe-use-residual", "true"},
      {"--num-experts 4 --moe-router-load-balancing-type none", "moe-aux-loss-coeff", "0"},
      {"--num-experts 4 --moe-router-load-balancing-type aux_loss --router-type 0",
       "moe-aux-loss-samples", "1"},
      {"--num-experts 4 --moe-min-capacity 0 --top-k-linear-strategy normal "
       "--moe-linear-layer-type standard --moe-grouped-gemm",
       "num-experts", "4"},
      {"--num-experts 4 --expert-model-parallel-size 2 --devices 2", "expert-model-parallel-size",
       "2"},
      {"--eval-iters 0 --eval-interval 5", "eval-every", "0"},  // no validation
      {"--eval-iters 0", "eval-at-end", "false"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.flags);
    const AskedTraining got = asked(text(kPretrain, c.flags));
    EXPECT_EQ(problems_of(got), "");
    EXPECT_EQ(field_text(got, c.field), c.value);
  }
}

/// A field has several names, and flags are counted from under any of them.
TEST(RapidformerFlags, AreCountedFromUnderAnyNameOfAField) {
  const std::string line = kPretrain;
  const auto instead = [&](const std::string& flag, const std::string& other) {
    std::string out = line;
    return out.replace(out.find(flag), flag.size(), other);
  };
  const AskedTraining batch =
      asked(instead("--micro-batch-size 1 --global-batch-size 8",
                    "--micro-batch-size 4 --devices 4 --tensor-parallel-size 2"));
  EXPECT_EQ(problems_of(batch), "");
  EXPECT_EQ(batch.config.global_batch_size, 8);
  const AskedTraining warm =
      asked(instead("--train-iters 10", "--steps 1000 --lr-warmup-fraction .01"));
  EXPECT_EQ(problems_of(warm), "");
  EXPECT_EQ(warm.config.optimizer.schedule.warmup_steps, 10);
  EXPECT_EQ(problems_of(asked(instead("--num-layers 2 --hidden-size 64", "--layers 2 --width 64"))),
            "");
  const AskedTraining epochs = asked(
      "--task sequence_classification --init-from m --train-data t.tsv --num-train-epochs 3 "
      "--lr 2e-5 --save s --micro-batch-size 16");
  EXPECT_EQ(problems_of(epochs), "");
  EXPECT_EQ(epochs.config.epochs, 3);
  // What is told names the flag that was given.
  EXPECT_NE(problems_of(asked(line + "--tensor-parallel-size 3"))
                .find("--tensor-parallel-size 3 makes parts of 3 devices"),
            std::string::npos);
  // Both rates: that of attention is not Megatron-LM's default.
  EXPECT_EQ(field_text(asked(line + "--dropout 0"), "attention-dropout"), "-1");
}

TEST(RapidformerFlags, SamplesAreStepsOfTheBatch) {
  std::string line = kPretrain;
  line.replace(line.find("--train-iters 10"), 16, "--train-samples 85");
  const AskedTraining got = asked(line);
  EXPECT_EQ(problems_of(got), "");
  EXPECT_EQ(got.config.steps, 10);
  ASSERT_EQ(got.notices.size(), 1u);
  EXPECT_EQ(got.notices[0], "--train-samples 85 are 10 steps of 8 samples, with 5 left over");
}

TEST(RapidformerFlags, TheFamilyFollowsFromTheTokenizer) {
  struct Case {
    const char *type, *family;
  };
  for (const Case& c : {Case{"GPT2BPETokenizer", "gpt2"}, Case{"BertWordPieceLowerCase", "bert"},
                        Case{"BertWordPieceCase", "bert"}, Case{"Llama2Tokenizer", "llama"},
                        Case{"SentencePieceTokenizer", "gpt2"}}) {
    SCOPED_TRACE(c.type);
    std::string line = kPretrain;
    line.replace(line.find("GPT2BPETokenizer"), 16, c.type);
    EXPECT_EQ(field_text(asked(line), "family"), c.family);
  }
  EXPECT_EQ(field_text(asked(text(kPretrain, "--swiglu --normalization RMSNorm")), "family"),
            "llama");
  // Its positions are not learned.
  EXPECT_EQ(problems_of(asked(text(kPretrain, "--swiglu --disable-bias-linear"))), "");
}

TEST(RapidformerFlags, WhatIsWrongIsTold) {
  struct Case {
    const char *flags, *problem;
  };
  const Case kCases[] = {
      {"--train-samples 80",
       "--train-iters 10 and --train-samples 80 disagree: both set the length of the run; give "
       "one"},
      {"--epochs 3",
       "--epochs 3 and --train-iters 10 disagree: both set the length of the run; give one"},
      {"--lr-warmup-iters 5 --lr-warmup-fraction .1",
       "--lr-warmup-iters 5 and --lr-warmup-fraction .1 disagree: both set the length of the "
       "warm-up; "
       "give one"},
      {"--seq-length=256",
       "--max-position-embeddings 128 is less than --seq-length 256; give at least as many "
       "positions "
       "as a sample has tokens"},
      {"--mask-prob .2",
       "--mask-prob .2 is not possible: it can be 0.15, because samples are drawn with "
       "Megatron-LM's defaults"},
      {"--loss-scale 1024",
       "--loss-scale 1024 is not possible: the scale is adaptive: give --initial-loss-scale and "
       "--min-loss-scale, equal for a scale that never falls"},
      {"--finetune",
       "--finetune needs --load; give --load FOLDER, or only --pretrained-model-name-or-path NAME"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.flags);
    std::string line = kPretrain;
    if (std::string(c.flags).starts_with("--seq-length"))
      line.erase(line.find("--seq-length 64"), 16);
    const std::string found = problems_of(asked(line + c.flags));
    EXPECT_NE(found.find(c.problem), std::string::npos) << found;
  }
}

/// Seed 002, 1.2: micro 16 and global 16 on four devices, and a pipeline that needs more of them.
TEST(RapidformerFlags, EmptyValuesAreOfVariablesThatAreNotSet) {
  for (const char* flag : {"--task", "--data-path", "--pretrained-model-name-or-path", "--load",
                           "--num-workers", "--tokenizer-model", "--data-name", "--lr"}) {
    for (const Arguments& words : {Arguments{flag, ""}, Arguments{text(flag, "=")}}) {
      SCOPED_TRACE(words.front());
      Arguments all = words_of(kPretrain);
      all.insert(all.end(), words.begin(), words.end());
      const AskedTraining got = read_rapidformer_flags(all, FlagsOf::Command);
      const std::string said = problems_of(got);
      EXPECT_TRUE(said.starts_with(
          text(flag, " has an empty value, perhaps an unset variable; give ", flag, " ")))
          << said;
    }
  }
}

TEST(RapidformerFlags, ValuesOfFlagsThatDoNothingAreReadToo) {
  struct Case {
    const char *flags, *problem;  // empty: none
  };
  const Case kCases[] = {
      {"--local_rank x", "--local_rank is 'x'"},
      {"--local_rank -1", ""},  // as programs get it that nobody launched
      {"--local_rank -2", "--local_rank is -2; give a number from -1 on"},
      {"--local-rank 1.5", "--local-rank is '1.5'"},
      {"--num-workers -1", "--num-workers is -1; give a number from 0 on"},
      {"--num-workers two", "--num-workers is 'two'"},
      {"--num-workers 4", ""},
      {"--timing-log-level x", "--timing-log-level is 'x'"},
      {"--eval-global-batch-size -8", "--eval-global-batch-size is -8; give a number from 0 on"},
      {"--tensorboard-queue-size x", "--tensorboard-queue-size is 'x'"},
      {"--attention-dropout -0.5", "attention-dropout is -0.5; it must be at least 0"},
      {"--attention-dropout -1", ""},
      {"--attention-dropout nan", "attention-dropout is nan; it must be a finite number"},
      {"--hidden-dropout -0.5", "dropout is -0.5; it must be at least 0"},
      {"--split nan,1", "split 'nan,1' has 'n' in it"},
      {"--split xyz,1", "split 'xyz,1' has 'x' in it"},
      {"--split 9;1", "split '9;1' has ';' in it"},
      {"--split 9/1", ""},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.flags);
    AskedTraining got = asked(text(kPretrain, c.flags));
    EXPECT_TRUE(c.problem[0] != 0 || problems_of(got).empty()) << problems_of(got);
    find_problems(got.config, got.problems);
    const std::string said = problems_of(got);
    EXPECT_NE(said.find(c.problem), std::string::npos) << said;
  }
}

TEST(RapidformerFlags, NoEpochsAreNoRun) {
  const std::string said = problems_of(
      asked("--task sequence_classification --init-from m --train-data t.tsv --epochs 0 --lr 2e-5 "
            "--save s --micro-batch-size 16"));
  EXPECT_TRUE(said.starts_with("--epochs 0 is no pass over the data; give 1 or more")) << said;
}

/// What the help of a flag offers is taken.
TEST(RapidformerFlags, HelpOffersWhatIsTaken) {
  const std::string_view note = find_flag_row("optimizer")->note;
  std::size_t taken = 0;
  for (const std::string& word : split(note.substr(note.find("or ") + 3), ',')) {
    SCOPED_TRACE(word);
    ++taken;
    EXPECT_EQ(problems_of(asked(text(kPretrain, "--optimizer ", trim(word)))), "");
  }
  EXPECT_EQ(taken, 3u);
}

/// What remains of a field whose name is a row's is described by that name.
TEST(RapidformerFlags, HelpDescribesOtherNamesByTheRow) {
  const std::string help = rapidformer_help({}, 100);
  for (const char* line : {"  --no-bf16                 not --bf16\n",
                           "  --num-train-epochs N      as --epochs (also --num-epochs)\n"})
    EXPECT_NE(help.find(line), std::string::npos) << line;
}

TEST(RapidformerFlags, TheBatchAndTheMeshAreHeldAgainstTheDevices) {
  const std::string line =
      "--task sequence_classification --pretrained-model-name-or-path m --train-data t.tsv "
      "--epochs 3 --lr 2e-5 --save s --micro-batch-size 16 ";
  const Environment four = {
      {"CUDA_VISIBLE_DEVICES", "4,5,6,7"}, {"NNODES", "1"}, {"NODE_RANK", "0"}};
  EXPECT_NE(
      problems_of(asked(line + "--global-batch-size 16", four))
          .find("--micro-batch-size 16 x 4 data parallel devices is 64, which does not divide "
                "--global-batch-size 16; give --global-batch-size 64, or --micro-batch-size 1, "
                "2, 4"),
      std::string::npos)
      << problems_of(asked(line + "--global-batch-size 16", four));
  EXPECT_EQ(field_text(asked(line, four), "global-batch-size"), "64");  // Megatron-LM's default
  EXPECT_NE(
      problems_of(
          asked(line + "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4", four))
          .find("--tensor-model-parallel-size 4 x --pipeline-model-parallel-size 4 makes parts "
                "of 16 devices, and there are 4 devices (CUDA_VISIBLE_DEVICES 4,5,6,7); lower "
                "one of the sizes, or give --devices 16"),
      std::string::npos);
}

TEST(RapidformerFlags, TheEnvironmentSaysHowManyDevices) {
  struct Case {
    Environment environment;
    const char *flags, *devices;
  };
  const Case kCases[] = {
      {{}, "", "1"},
      {{{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}}, "", "4"},
      {{{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}}, "--devices 2", "2"},
      {{{"CUDA_VISIBLE_DEVICES", "-1"}}, "", "1"},
      {{{"CUDA_VISIBLE_DEVICES", ""}}, "", "1"},
      {{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"NNODES", "1"}, {"NODE_RANK", "0"}}, "", "2"},
      {{{"CUDA_VISIBLE_DEVICES", "0,1"},
        {"NNODES", "2"},
        {"NODE_RANK", "1"},
        {"MASTER_ADDR", "node1"}},
       "",
       "4"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.flags);
    const AskedTraining got = asked(text(kPretrain, c.flags), c.environment);
    EXPECT_EQ(problems_of(got), "");
    EXPECT_EQ(field_text(got, "devices"), c.devices);
  }
}

/// A line without a backslash at its end loses the flags below it.
TEST(RapidformerFlags, MissingFlagsNameTheLastThatArrived) {
  const std::string found = problems_of(asked("--task pretraining --mixed-precision"));
  EXPECT_NE(
      found.find("--data-path, --num-layers, --hidden-size, --num-attention-heads, "
                 "--seq-length, --micro-batch-size, --train-iters, --lr are missing; the last "
                 "flag that arrived is `--mixed-precision`: if the script continues below it, that "
                 "line lacks a backslash at its end"),
      std::string::npos)
      << found;
}

/// What a shell passes for "\    # comment", and for "\ # comment".
TEST(RapidformerFlags, ACommentBehindABackslashIsTold) {
  for (const char* word : {" ", " #4 devices", "#4"}) {
    SCOPED_TRACE(word);
    try {
      refuse_comments({"--task", "pretraining", word});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      EXPECT_TRUE(std::string(error.what())
                      .starts_with("after 'pretraining' a backslash is followed by a "))
          << error.what();
    }
  }
  EXPECT_NO_THROW(refuse_comments({"--task", "pretraining", ""}));
}

class DataFlags : public testing::Test {
 protected:
  DataFlags() {
    std::string name = testing::TempDir() + "rapidformer-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~DataFlags() override { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const char* content = "x") const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  /// With every @ replaced by the folder.
  AskedTraining ask(std::string line, const Environment& environment = {}) const {
    for (std::size_t at = 0; (at = line.find('@', at)) != std::string::npos; at += path_.size())
      line.replace(at, 1, path_);
    return asked(line, environment);
  }
  std::string path_;
};

TEST_F(DataFlags, AFolderOfTables) {
  const std::string line =
      "--task sequence_classification --pretrained-model-name-or-path m --epochs 3 --lr 2e-5 "
      "--save s --micro-batch-size 16 ";
  for (const char* name : {"a/train.tsv", "a/dev.tsv", "a/test.tsv", "b/train.jsonl",
                           "b/validation.jsonl", "c/train.csv"})
    write(name);
  const AskedTraining a = ask(line + "--data-path @ --data-name a");
  EXPECT_EQ(problems_of(a), "");
  EXPECT_EQ(a.config.data, std::vector<std::string>{path_ + "/a/train.tsv"});
  EXPECT_EQ(a.config.valid_data, std::vector<std::string>{path_ + "/a/dev.tsv"});
  EXPECT_EQ(a.config.test_data, std::vector<std::string>{path_ + "/a/test.tsv"});
  EXPECT_EQ(ask(line + "--data-path @/a --test-data-path t").config.test_data,
            std::vector<std::string>{"t"});
  const AskedTraining b = ask(line + "--data-dir @/b");
  EXPECT_EQ(b.config.data, std::vector<std::string>{path_ + "/b/train.jsonl"});
  EXPECT_EQ(b.config.valid_data, std::vector<std::string>{path_ + "/b/validation.jsonl"});
  EXPECT_EQ(b.config.test_data, std::vector<std::string>{});
  const AskedTraining c = ask(line + "--dataset-path @ --dataset-name c");
  EXPECT_EQ(c.config.valid_data, std::vector<std::string>{});
  EXPECT_EQ(c.notices.size(), 1u);
  EXPECT_NE(
      problems_of(ask(line + "--data-path @ --data-name d")).find("d/train.tsv, .csv or .jsonl"),
      std::string::npos);
  for (const char* flags : {"--data-path @/a --eval-iters 0", "--data-path @/c --eval-iters 0",
                            "--data-path @/c --valid-data v --eval-iters 0"}) {
    const AskedTraining none = ask(line + flags);
    EXPECT_EQ(problems_of(none), "") << flags;
    EXPECT_EQ(none.notices.size(), 0u) << flags;
    EXPECT_EQ(none.config.held_out, 0) << flags;
    EXPECT_EQ(none.config.valid_data, std::vector<std::string>{}) << flags;
    EXPECT_EQ(none.config.test_data, std::vector<std::string>{}) << flags;
  }
  EXPECT_NE(problems_of(ask(line + "--data-path @ --data-name a --dataset-name b"))
                .find("--data-name a and --dataset-name b disagree"),
            std::string::npos);
  EXPECT_NE(problems_of(ask(line + "--data-path @/a --train-data-path @/a/train.tsv"))
                .find("--data-path and --train-data-path both set the training data; give one"),
            std::string::npos);
}

/// What is counted from several fields is counted from those of the file, too.
TEST_F(DataFlags, AFileSaysWhatFlagsDoNot) {
  write("base.toml",
        "global-batch-size = 64\ndevices = 4\nsteps = 1000\nfamily = \"gpt2\"\nlayers = 4\n"
        "pipeline-schedule = \"zb-v\"\ncheckpoint-names = \"iter\"\n");
  write("bare.toml", "steps = 1000\n");
  struct Case {
    const char *flags, *field, *value;
  };
  const Case kCases[] = {
      {"--config @/base.toml --micro-batch-size 4", "global-batch-size", "64"},
      {"--config @/base.toml --tensor-model-parallel-size 2", "devices", "4"},
      {"--config @/base.toml --train-samples 128", "steps", "2"},
      {"--config @/base.toml --lr-decay-samples 128", "lr-decay-steps", "2"},
      {"--config @/base.toml --lr-warmup-samples 128", "lr-warmup-steps", "2"},
      {"--config @/base.toml --lr-warmup-fraction .05", "lr-warmup-steps", "50"},
      {"--config @/base.toml --lr-warmup-fraction .05 --train-samples 6400", "lr-warmup-steps",
       "5"},
      {"--config @/base.toml --num-layers-per-virtual-pipeline-stage 1 "
       "--pipeline-model-parallel-size 2",
       "virtual-pipeline-stages", "2"},
      {"--config @/base.toml --num-virtual-stages-per-pipeline-rank 2", "pipeline-schedule",
       "zb-v"},
      {"--config @/bare.toml --micro-batch-size 2 --data-parallel-size 3", "global-batch-size",
       "6"},
      {"--config @/bare.toml --micro-batch-size 2 --data-parallel-size 3 --train-samples 60",
       "steps", "10"},
      {"--config @/bare.toml --train-samples 80", "steps", "10"},  // of the 8 that a batch has then
      {"--preset gpt2-small --micro-batch-size 2", "global-batch-size", "4"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.flags);
    const AskedTraining got = ask(c.flags);
    EXPECT_EQ(problems_of(got), "");
    EXPECT_EQ(field_text(got, c.field), c.value);
  }
  EXPECT_NE(problems_of(ask("--config @/base.toml --tensor-model-parallel-size 8"))
                .find("makes parts of 8 devices, and there are 4 devices (devices 4 in "),
            std::string::npos);
  EXPECT_NE(problems_of(ask("--config @/base.toml --swiglu")).find("the model is of family gpt2"),
            std::string::npos);
  const AskedTraining two = ask("--config @/base.toml", {{"CUDA_VISIBLE_DEVICES", "0,1"}});
  EXPECT_EQ(field_text(two, "devices"), "4");
  write("epochs.toml", "epochs = 3\n");
  EXPECT_NE(problems_of(ask("--config @/epochs.toml --lr-warmup-fraction .1"))
                .find("which is known only later, from epochs 3 and the data"),
            std::string::npos);
}

TEST_F(DataFlags, CheckpointsAreFoundHoweverTheyAreCalled) {
  std::string line = kPretrain;
  line.erase(line.find("--save s "), 9);
  for (const char* name :
       {"step/checkpoints/step-00000002/manifest.json",
        "step/checkpoints/step-00000004/manifest.json", "iter/iter_0000002/manifest.json"})
    write(name);
  for (const auto& [folder, checkpoint] :
       {std::pair<std::string, std::string>("step", "step/checkpoints/step-00000002"),
        std::pair<std::string, std::string>("iter", "iter/iter_0000002")}) {
    SCOPED_TRACE(folder);
    const auto expect = [&](const std::string& flags, const std::string& resume,
                            const std::string& output, const std::string& names) {
      SCOPED_TRACE(flags);
      const AskedTraining got = ask(line + flags);
      EXPECT_EQ(problems_of(got), "");
      EXPECT_EQ(got.config.resume, resume);
      EXPECT_EQ(got.config.output, path_ + "/" + output);
      EXPECT_EQ(got.config.checkpoint_names, names);
    };
    const std::string at = "--load @/" + folder, path = path_ + "/" + checkpoint;
    expect(at + " --exit-on-missing-checkpoint", "auto", folder, folder);
    expect(at + " --ckpt-step 2", path, folder, folder);
    expect(at + " --ckpt-step 2 --save @/new", path, "new", "iter");
    expect(at + " --output @/new", path_ + "/" + folder, "new", "iter");
    expect("--output @/" + folder + " --resume auto", "auto", folder, folder);
  }
  EXPECT_NE(problems_of(ask(line + "--load @/step --ckpt-step 3")).find("; it has 2, 4"),
            std::string::npos);
}

TEST_F(DataFlags, AModelThatNoRunLeftIsNotReplaced) {
  std::string line = kPretrain;
  line.erase(line.find("--save s "), 9);
  write("models/hf/config.json", "{}");
  const auto problems = [&](const char* flags) { return problems_of(ask(line + flags)); };
  EXPECT_NE(problems("--save @/models").find("models/hf' is there already, and no run left it"),
            std::string::npos);
  EXPECT_NE(problems("--load @/models --save @/models").find("no run left it"), std::string::npos);
  EXPECT_EQ(problems("--save @/others"), "");
  EXPECT_NE(problems("--save @/models --init-from @/models/hf")
                .find("which its trained model would replace; give another --save"),
            std::string::npos);
  write("models/iter_0000002/manifest.json");
  EXPECT_EQ(problems("--load @/models"), "");
}

TEST_F(DataFlags, SeveralTablesAreAllTaken) {
  const std::string line =
      "--task sequence_classification --pretrained-model-name-or-path m --epochs 3 --lr 2e-5 "
      "--save s --micro-batch-size 16 ";
  for (const char* name : {"a.tsv", "b.tsv", "c/train.tsv"}) write(name);
  const std::vector<std::string> both = {path_ + "/a.tsv", path_ + "/b.tsv"};
  for (const char* flags :
       {"--data-path @/a.tsv @/b.tsv", "--data-path @/a.tsv --data-path @/b.tsv"}) {
    const AskedTraining got = ask(line + flags);
    EXPECT_EQ(problems_of(got), "") << flags;
    EXPECT_EQ(got.config.data, both) << flags;
  }
  EXPECT_NE(problems_of(ask(line + "--data-path @/c @/a.tsv")).find("/c' is none; give one folder"),
            std::string::npos);
  EXPECT_NE(problems_of(ask(line + "--data-path @/a.tsv @ --data-name c")).find("' is none; give"),
            std::string::npos);
}

/// Seed 002: the script for GPT names what preprocess_data makes for BERT.
TEST_F(DataFlags, TheOtherKindOfTokenFilesIsNamed) {
  write("gpt_text_document.idx");
  std::string line = kPretrain;
  line.erase(line.find("--train-data-path d "));
  const std::string found = problems_of(ask(line + "--data-path @/gpt_text_sentence"));
  EXPECT_NE(found.find("gpt_text_document.idx is there: preprocess_data made it without "
                       "--split-sentences; give --data-path "),
            std::string::npos)
      << found;
  EXPECT_EQ(problems_of(ask(line + "--data-path @/gpt_text_document")), "");
  const AskedTraining two = ask(line + "--data-path @/gpt_text_document --split 980,20");
  ASSERT_EQ(two.notices.size(), 1u);
  EXPECT_TRUE(two.notices[0].starts_with("--split 980,20 has no test part")) << two.notices[0];
}

}  // namespace
}  // namespace tessera
