/// Runs of the command: what they print, what lies in --save, and how they go on.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "tessera/base/text.h"
#include "tessera/rapidformer/command.h"
#include "tessera/rapidformer/request.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Ended {
  int code = 0;
  std::string out, err;
};

Ended ended(const Arguments& arguments) {
  std::ostringstream out, err;
  Console console{out, err};
  const int code =
      run_rapidformer(arguments, console, [](const char*) -> const char* { return nullptr; });
  return {code, out.str(), err.str()};
}

class RapidformerRun : public testing::Test {
 protected:
  RapidformerRun() {
    std::string name = testing::TempDir() + "rapidformer-run-XXXXXX";
    path_ = ::mkdtemp(name.data());
    std::ofstream words(path_ + "/vocab.txt"), texts(path_ + "/in.jsonl");
    words << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nA\na\n";
    for (int i = 0; i < 20; ++i) words << "word" << i << "\n";
    for (int row = 0; row < 40; ++row) {
      texts << R"({"text": ")";
      for (int i = 0; i < 30; ++i) texts << "word" << (row * 7 + i * i) % 20 << " ";
      texts << "\"}\n";
    }
    words.close(), texts.close();
    const Ended made =
        run("preprocess_data --input @/in.jsonl --output-prefix @/d --vocab-file "
            "@/vocab.txt --tokenizer-type BertWordPieceCase");
    EXPECT_EQ(made.code, 0) << made.err;
  }
  ~RapidformerRun() override { fs::remove_all(path_); }

  /// With every @ replaced by the folder.
  Ended run(std::string line) const {
    for (std::size_t at = 0; (at = line.find('@', at)) != std::string::npos; at += path_.size())
      line.replace(at, 1, path_);
    Arguments words;
    for (const std::string& word : split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    return ended(words);
  }
  std::string bytes(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(path_ + "/" + name).rdbuf();
    return out.str();
  }
  bool has(const std::string& name) const { return fs::exists(path_ + "/" + name); }

  std::string path_;
};

const char* const kTrain =
    "--task pretraining --family gpt2 --num-layers 1 --hidden-size 16 --num-attention-heads 2 "
    "--micro-batch-size 2 --global-batch-size 4 --seq-length 16 --max-position-embeddings 32 "
    "--tokenizer-type BertWordPieceCase --vocab-file @/vocab.txt --data-path @/d_text_document "
    "--split 8,1,1 --train-iters 4 --lr 1e-3 --log-interval 1 --eval-iters 1 --save @/s ";

/// What a line says after "lm loss: ", for each line of an iteration.
std::vector<std::string> losses_in(const std::string& out) {
  std::vector<std::string> losses;
  for (const std::string& line : split(out, '\n')) {
    const std::size_t at = line.find("lm loss: ");
    if (starts_with(line, " iteration "))
      losses.push_back(line.substr(at, line.find(" |", at) - at));
  }
  return losses;
}

TEST_F(RapidformerRun, LeavesMegatronsFolderAndAModelForTransformers) {
  const Ended first = run(text(kTrain, "--save-interval 2"));
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_EQ(losses_in(first.out).size(), 4u) << first.out;
  EXPECT_EQ(bytes("s/latest_checkpointed_iteration.txt"), "4\n");
  for (const char* name :
       {"s/iter_0000002/manifest.json", "s/iter_0000004/manifest.json", "s/hf/config.json",
        "s/hf/model.safetensors", "s/hf/vocab.txt", "s/metrics.jsonl", "s/config.toml"})
    EXPECT_TRUE(has(name)) << name;
  EXPECT_FALSE(has("s/checkpoints"));
  // The commands of tessera take the folder.
  for (const char* line :
       {"inspect @/s --verify", "export @/s --output @/e", "chart @/s --output @/losses.svg",
        "sample @/s --prompt word1 --tokens 4"}) {
    const Ended got = run(line);
    EXPECT_EQ(got.code, 0) << line << "\n" << got.err;
  }
  const Ended again = run(kTrain);
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("holds another run"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("; resume it with --load "), std::string::npos) << again.err;
}

/// transformers takes capitals for small letters where a vocab.txt lies alone.
TEST_F(RapidformerRun, TransformersIsToldThatCapitalsCount) {
  std::string line = kTrain;
  const std::string typed = "--tokenizer-type BertWordPieceCase --vocab-file @/vocab.txt";
  line.replace(line.find(typed), typed.size(), "--tokenizer-model @/vocab.txt");
  const Ended trained = run(line);
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(bytes("s/hf/tokenizer_config.json"),
            "{\n  \"tokenizer_class\": \"BertTokenizer\",\n  \"do_lower_case\": false\n}\n");
}

/// Of a folder, with labels and without them.
TEST_F(RapidformerRun, TestsThePartOfThatName) {
  for (const char* const part : {"train", "dev", "test"}) {
    for (const char* const set : {"known", "secret"}) {
      fs::create_directories(path_ + "/" + set);
      const bool labelled = part != std::string("test") || set == std::string("known");
      std::ofstream rows(text(path_, "/", set, "/", part, ".tsv"));
      rows << "index\tsentence" << (labelled ? "\tlabel\n" : "\n");
      for (int i = 0; i < 20; ++i)
        rows << i << "\tword" << i << " word" << i * 7 % 20
             << (labelled ? text("\t", i % 2, "\n") : "\n");
    }
  }
  const std::string line =
      "--task sequence_classification --family bert --num-layers 1 --hidden-size 16 "
      "--num-attention-heads 2 --micro-batch-size 4 --global-batch-size 4 --vocab-file @/vocab.txt "
      "--tokenizer-type BertWordPieceCase --epochs 2 --lr 1e-3 --data-path @ ";
  const Ended known = run(text(line, "--data-name known --save @/known-run"));
  ASSERT_EQ(known.code, 0) << known.err;
  EXPECT_NE(known.out.find(" test at the end of training, best weights, of iteration "),
            std::string::npos)
      << known.out;
  EXPECT_NE(bytes("known-run/metrics.jsonl").find("{\"kind\":\"test\",\"step\":"),
            std::string::npos);
  EXPECT_TRUE(starts_with(bytes("known-run/predictions-test.tsv"), "row\tlabel\tprediction\n"));
  const Ended secret = run(text(line, "--data-name secret --save @/secret-run"));
  ASSERT_EQ(secret.code, 0) << secret.err;
  EXPECT_NE(secret.out.find(" | no labels, so no scores | predictions: "), std::string::npos)
      << secret.out;
  EXPECT_TRUE(starts_with(bytes("secret-run/predictions-test.tsv"), "row\tprediction\n"));
}

TEST_F(RapidformerRun, GoesOnWithTheSameLosses) {
  const std::vector<std::string> whole = losses_in(run(kTrain).out);
  ASSERT_EQ(whole.size(), 4u);
  std::string line = kTrain;
  line.replace(line.find("@/s "), 3, "@/t");
  const Ended half = run(text(line, "--load @/t --exit-interval 2"));  // there is none yet
  EXPECT_EQ(half.code, 0) << half.err;
  EXPECT_EQ(bytes("t/latest_checkpointed_iteration.txt"), "2\n");
  const Ended rest = run(text(line, "--load @/t"));
  EXPECT_EQ(rest.code, 0) << rest.err;
  std::vector<std::string> both = losses_in(half.out);
  for (const std::string& loss : losses_in(rest.out)) both.push_back(loss);
  EXPECT_EQ(both, whole);
  // An earlier iteration, in another folder; and the weights alone.
  line.replace(line.find("@/t "), 3, "@/u");
  const Ended back = run(text(line, "--load @/t --ckpt-step 2"));
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(losses_in(back.out), std::vector<std::string>(whole.begin() + 2, whole.end()));
  line.replace(line.find("@/u "), 3, "@/v");
  const Ended tuned = run(text(line, "--load @/t --finetune"));
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(losses_in(tuned.out).size(), 4u);
  EXPECT_NE(losses_in(tuned.out), whole);
  // The checkpoint says which model it is.
  const Ended known =
      run("--task pretraining --micro-batch-size 2 --global-batch-size 4 --train-iters 2 --lr 1e-3 "
          "--log-interval 1 --data-path @/d_text_document --load @/t --finetune --save @/w");
  EXPECT_EQ(known.code, 0) << known.err;
  EXPECT_EQ(losses_in(known.out).size(), 2u);
  const Ended none = run(text(line, "--load @/t --ckpt-step 3"));
  EXPECT_NE(none.err.find("has no checkpoint of that iteration; it has 2, 4"), std::string::npos)
      << none.err;
}

TEST_F(RapidformerRun, WithoutAValidationNoEpochHasOne) {
  std::ofstream table(path_ + "/train.tsv");
  table << "text\tlabel\n";
  for (int row = 0; row < 40; ++row) table << "word" << row % 20 << "\t" << row % 2 << "\n";
  table.close();
  const std::string line =
      "--task sequence_classification --family bert --num-layers 1 --hidden-size 16 "
      "--num-attention-heads 2 --seq-length 8 --tokenizer-type BertWordPieceCase --vocab-file "
      "@/vocab.txt --data-path @ --text-column text --label-column label --epochs 2 "
      "--micro-batch-size 4 --lr 1e-3 --threads 1 ";
  const Ended judged = run(line + "--save @/judged"),
              not_judged = run(line + "--save @/n --eval-iters 0");
  EXPECT_EQ(judged.code, 0) << judged.err;
  EXPECT_NE(judged.out.find("evaluation after epoch 2"), std::string::npos) << judged.out;
  EXPECT_EQ(not_judged.code, 0) << not_judged.err;
  EXPECT_EQ(not_judged.out.find("evaluation"), std::string::npos) << not_judged.out;
}

TEST_F(RapidformerRun, WordsThatAreNoFlagsAreTheCommandTessera) {
  EXPECT_EQ(run("version").out, "tessera " + std::string(kVersion) + "\n");
  EXPECT_EQ(ended({}).code, 0);
  EXPECT_NE(run("--help").out.find("--lr-warmup-fraction X"), std::string::npos);
  EXPECT_EQ(run("--user-script").code, 2);
  EXPECT_NE(
      run("--user-script a.cpp --user-script=b.cpp").err.find("'a.cpp' and 'b.cpp'; give one"),
      std::string::npos);
  EXPECT_EQ(run("--user-script @/gone.cpp --help").out, "") << "the script has its own help";
}

/// Runs that start at once find each other's folders empty.
TEST_F(RapidformerRun, WithoutSaveEachTakesAFolderOfItsOwn) {
  const fs::path before = fs::current_path();
  fs::current_path(path_);
  const auto asked = [] {
    return std::make_unique<AskedTraining>(
        read_rapidformer_flags({"--task", "pretraining", "--lr", "1"}, FlagsOf::Command));
  };
  std::vector<std::unique_ptr<AskedTraining>> runs;
  for (int i = 1; i <= 3; ++i) {
    runs.push_back(asked());
    EXPECT_EQ(runs.back()->config.output, text("rapidformer-runs/run-", i));
  }
  std::ofstream("rapidformer-runs/run-1/metrics.jsonl") << "of a run that has begun";
  runs.erase(runs.begin() + 1);  // one that ends before anything is in its folder
  EXPECT_EQ(asked()->config.output, "rapidformer-runs/run-2");
  runs.clear();
  EXPECT_TRUE(has("rapidformer-runs/run-1"));
  EXPECT_FALSE(has("rapidformer-runs/run-3"));
  fs::current_path(before);
}

}  // namespace
}  // namespace tessera
