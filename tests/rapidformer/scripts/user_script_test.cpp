/// User scripts: compiled, kept, run; and what is said of those that are wrong.

#include "tessera/rapidformer/user_script.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "docs/shown.h"
#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/files/process.h"
#include "tessera/rapidformer/request.h"
#include "tessera/token_files/indexed_dataset_writer.h"

namespace tessera {

namespace {

/// A folder with a cache of its own, and what the script's compiler says.
struct Scripts {
  Scripts() : tools(script_tools(process_environment())) { tools.cache = folder / "cache"; }

  std::string write(const std::string& name, const std::string& source) const {
    std::ofstream(folder / name) << source;
    return folder / name;
  }
  std::string compile(const std::string& path) {
    said.str("");
    Console console{said, said};
    return compiled_script(path, tools, console);
  }
  bool compiled_now() const { return said.str().starts_with("compiling "); }
  std::string refusal(const std::string& path) {
    try {
      compile(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string program_of(const char* main_body) {
    return compile(
        write("script.cpp", text("#include <cstdio>\nint main() { ", main_body, " }\n")));
  }

  TestFolder folder;
  ScriptTools tools;
  std::ostringstream said;
};

/// Token files of documents that end with token 31.
std::string token_files(const TestFolder& folder) {
  IndexedDatasetWriter writer(folder / "tokens", TokenType::U16);
  for (std::int32_t d = 0; d < 60; ++d) {
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < 20 + d % 7; ++i) ids.push_back((d * 5 + i) % 31);
    ids.push_back(31);
    writer.add_sequence(ids);
    writer.end_document();
  }
  writer.finish();
  return folder / "tokens";
}

std::vector<std::string> pretrainer_flags(const TestFolder& folder) {
  std::vector<std::string> out = split(
      "--split 80,20 --vocab-size 32 --eod-token 31 --family gpt2 --num-layers 2 --hidden-size 32 "
      "--num-attention-heads 4 --seq-length 16 --dropout 0 --train-iters 20 --eval-iters 2 "
      "--global-batch-size 8 --micro-batch-size 2 --lr 0.01 --log-interval 1 --threads 1",
      ' ');
  out.insert(out.end(), {"--data-path", token_files(folder)});
  return out;
}

/// The losses of a run, one for each step, and that of the validation behind them.
std::vector<double> losses_in(const std::string& output) {
  std::vector<double> out;
  std::ifstream metrics(output + "/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (json.contains("loss") && json.value("kind", "") != "eval")
      out.push_back(json["loss"].get<double>());
  }
  return out;
}

/// What was measured after each epoch of a run.
std::vector<nlohmann::json> evals_in(const std::string& output) {
  std::vector<nlohmann::json> out;
  std::ifstream metrics(output + "/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    if (json.value("kind", "") == "eval") out.push_back(std::move(json));
  }
  return out;
}

/// The losses of the run of a program.
std::vector<double> losses_of(const std::string& program, std::vector<std::string> words,
                              const std::string& output) {
  words.insert(words.begin(), program);
  words.insert(words.end(), {"--output", output});
  const ProcessResult result = run_process(words);
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  return losses_in(output);
}

/// `source` with one word for another, once.
std::string edited(std::string source, const std::string& from, const std::string& to) {
  const std::size_t at = source.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return source.replace(at, from.size(), to);
}

std::string without(std::string words, const std::string& path) {
  for (std::size_t at; (at = words.find(path)) != std::string::npos;) words.erase(at, path.size());
  return words;
}

/// Those of `rapidformer` without a script.
std::vector<double> losses_of_command(Scripts& scripts, std::vector<std::string> flags) {
  const std::string output = scripts.folder / "command";
  flags.insert(flags.end(), {"--save", output});
  Console console{scripts.said, scripts.said};
  const int code = run_training(read_rapidformer_flags(flags, FlagsOf::Command), console);
  EXPECT_EQ(code, 0) << scripts.said.str();
  return losses_in(output);
}

std::vector<double> numbers_in(const std::string& words) {
  std::vector<double> out;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) out.push_back(std::stod(word));
  }
  return out;
}

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST(UserScript, IsCompiledOnceForTheSameSource) {
  Scripts scripts;
  const std::string first = scripts.program_of("return 3;");
  EXPECT_TRUE(scripts.compiled_now());
  EXPECT_EQ(run_process({first}).exit_code, 3);
  EXPECT_EQ(scripts.program_of("return 3;"), first);
  EXPECT_FALSE(scripts.compiled_now());
  EXPECT_NE(scripts.program_of("return 4;"), first);
  EXPECT_TRUE(scripts.compiled_now());
  for (const auto& entry : std::filesystem::directory_iterator(scripts.tools.cache))
    EXPECT_FALSE(entry.is_directory()) << entry.path() << " is left of a compilation";
}

TEST(UserScript, IsCompiledAgainWhereAHeaderOfItsOwnChanges) {
  Scripts scripts;
  const auto program_with = [&](const char* code) {
    scripts.write("code of $mine.h", text("inline int code() { return ", code, "; }\n"));
    return scripts.compile(scripts.write(
        "script.cpp", "#include \"code of $mine.h\"\nint main() { return code(); }\n"));
  };
  EXPECT_EQ(run_process({program_with("5")}).exit_code, 5);
  EXPECT_EQ(run_process({program_with("6")}).exit_code, 6);
  EXPECT_TRUE(scripts.compiled_now());
  EXPECT_EQ(run_process({program_with("5")}).exit_code, 5);
  EXPECT_FALSE(scripts.compiled_now()) << "the first program is still there";
}

/// The compiler is a command, CXX="ccache g++", here one that edits what it is to compile.
TEST(UserScript, IsCompiledAgainWhereItWasEditedMeanwhile) {
  Scripts scripts;
  const std::string once = scripts.folder / "once", script = scripts.folder / "script.cpp";
  const std::string command =
      scripts.write("compiler.sh", text("case \"$*\" in *-MMD*) [ -e ", once, " ] || { touch ",
                                        once, "; echo 'int main() { return 9; }' > ", script,
                                        "; };; esac\nexec ", scripts.tools.compiler, " \"$@\"\n"));
  scripts.tools.compiler = "sh " + command;
  const auto code = [&] {
    scripts.write("script.cpp", "int main() { return 8; }\n");
    return run_process({scripts.compile(script)}).exit_code;
  };
  EXPECT_EQ(code(), 9);
  EXPECT_EQ(code(), 8);
  EXPECT_TRUE(scripts.compiled_now());
  EXPECT_EQ(code(), 8);
  EXPECT_FALSE(scripts.compiled_now());
}

/// What ranks know each other by is not for what they start.
TEST(UserScript, ItsCompilerHasNoSecret) {
  Scripts scripts;
  const std::string seen = scripts.folder / "seen",
                    command = scripts.write("compiler.sh",
                                            text("echo \"[$TESSERA_SECRET]\" >> ", seen, "\nexec ",
                                                 scripts.tools.compiler, " \"$@\"\n"));
  scripts.tools.compiler = "sh " + command;
  setenv("TESSERA_SECRET", "0123456789abcdef", 1);
  scripts.program_of("return 0;");
  unsetenv("TESSERA_SECRET");
  EXPECT_TRUE(read_file(seen).starts_with("[]\n"));
  EXPECT_EQ(read_file(seen).find("0123456789abcdef"), std::string::npos);
}

TEST(UserScript, TwoRunsAtOnceHaveTheSameProgram) {
  Scripts scripts;
  const std::string path = scripts.write("script.cpp", "int main() { return 7; }\n");
  std::string programs[2];
  std::thread threads[2];
  for (int i = 0; i < 2; ++i)
    threads[i] = std::thread([&, i] {
      std::ostringstream said;
      Console console{said, said};
      programs[i] = compiled_script(path, scripts.tools, console);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(programs[0], programs[1]);
  EXPECT_EQ(run_process({programs[0]}).exit_code, 7);
}

TEST(UserScript, WhatIsWrongIsTold) {
  Scripts scripts;
  const std::string broken =
      scripts.refusal(scripts.write("broken.cpp", "int main() { retrun 1; }"));
  EXPECT_TRUE(broken.starts_with(text("the user script '", scripts.folder / "broken.cpp",
                                      "' does not compile; the output of ")))
      << broken;
  EXPECT_NE(broken.find("broken.cpp:1:14: error: "), std::string::npos) << broken;
  const std::string no_main = scripts.refusal(scripts.write("none.cpp", "int f() { return 1; }"));
  EXPECT_NE(no_main.find("none.cpp' has no main(); end it with"), std::string::npos) << no_main;
  EXPECT_NE(scripts.refusal(scripts.folder / "gone.cpp").find("gone.cpp"), std::string::npos);
  scripts.tools.compiler = "no-such-compiler";
  const std::string none = scripts.refusal(scripts.write("script.cpp", "int main() {}"));
  EXPECT_NE(none.find("there is no C++ compiler no-such-compiler;"), std::string::npos) << none;
  scripts.tools.compiler = script_tools(process_environment()).compiler;
  scripts.tools.cache = scripts.folder / "broken.cpp/cache";
  const std::string no_cache = scripts.refusal(scripts.folder / "script.cpp");
  EXPECT_NE(no_cache.find("XDG_CACHE_HOME"), std::string::npos) << no_cache;
}

// What docs/guides/cpp-script.md shows of errors.
TEST(UserScript, ErrorsAreAsTheDocumentShowsThem) {
  Scripts scripts;
  const std::string here = scripts.folder / "",
                    folder = std::filesystem::path(scripts.folder.path()).filename().string();
  const std::string source = read_file(repo_file("examples/rapidformer/pretrainer.cpp"));
  const std::string misspelt =
      scripts.refusal(scripts.write("mine.cpp", edited(source, "model.logits", "model.logit")));
  EXPECT_NE(misspelt.find("mine.cpp:29:"), std::string::npos) << misspelt;
  if (scripts.tools.compiler == "c++" && run_process({"c++", "-dumpversion"}).output == "12\n")
    test::expect_text("docs/guides/cpp-script.md", "pretrainer.cpp", "compile error",
                      without("error: " + misspelt, here));
  // Labels of other lengths than the tokens.
  const std::string program = scripts.compile(scripts.write(
      "mine.cpp", edited(source, "slice(text, 1, 1, args.model.context)", "slice(text, 1, 1, 8)")));
  const ProcessResult run = run_process(
      with(with({program}, pretrainer_flags(scripts.folder)), {"--output", here + "o"}));
  EXPECT_EQ(run.exit_code, 2);
  test::expect_text("docs/guides/cpp-script.md", "pretrainer.cpp", "run-time error",
                    without(without(run.errors, here), folder + "/"));
}

TEST(UserScript, AnErrorNamesTheFunction) {
  struct Case {
    const char* name;
    const char* data;     // body of train_valid_test_datasets_provider
    const char* forward;  // body of run_forward_step
    const char* said;
  };
  const Case kCases[] = {
      {"an exception of the user's", "throw std::runtime_error(\"no such file\");",
       "return Value();",
       "error: no such file (std::runtime_error)\n    in "
       "Mine::train_valid_test_datasets_provider\n"},
      {"a feature that is not there", "return {std::make_shared<Rows>()};",
       "return batch[\"text\"];",
       "error: the batch has no feature 'text'; it has labels, row\n    in "
       "Mine::run_forward_step\n"},
      {"no scalar", "return {std::make_shared<Rows>()};", "return batch[\"row\"];",
       "error: the loss is of shape [8,4]; return a scalar"},
      {"no model to call", "return {std::make_shared<Rows>()};", "return model(batch);",
       "error: model(batch): with own_layers() there is no model to call; compute the loss "
       "directly from the batch\n    in Mine::run_forward_step\n"},
      {"rows of other lengths", "return {std::make_shared<Rows>(3)};",
       "return sum_all(linear(batch[\"row\"], \"w\", 1));",
       "error: sample 3 of the dataset: feature 'row' is a row of 5 f32, but in the first one it "
       "is a row of 4 f32; pad or cut it in get()"},
  };
  Scripts scripts;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const std::string program = scripts.compile(scripts.write("mine.cpp", text(R"(
#include "tessera/rapidformer/rapidformer.h"
using namespace tessera;
struct Rows : MapDataset {
  explicit Rows(std::int64_t wrong = -1) : wrong(wrong) {}
  std::int64_t size() const override { return 16; }
  Features get(std::int64_t i) const override {
    return {{"row", std::vector<float>(i == wrong ? 5 : 4)}, {"labels", 1}};
  }
  std::int64_t wrong;
};
struct Mine : Finetuner {
  using Finetuner::Finetuner;
  Datasets train_valid_test_datasets_provider() override { )",
                                                                               c.data, R"( }
  Provided model_optimizer_lr_scheduler_provider() override { return {ModelChoice::own_layers()}; }
  ModelOutput run_forward_step(const Batch& batch, const Model& model) override {
    (void)model;
    )",
                                                                               c.forward, R"(
  }
};
int main(int argc, char** argv) {
  RapidformerEngine engine(argc, argv);
  return Mine(engine).train();
}
)")));
    const ProcessResult run = run_process(
        {program, "--output", scripts.folder / "output", "--train-iters", "2", "--threads", "1"});
    EXPECT_EQ(run.exit_code, std::string_view(c.name) == "rows of other lengths" ? 3 : 2);
    EXPECT_NE(run.errors.find(c.said), std::string::npos) << run.errors;
  }
}

// Pairs of sentences, of which one word tells whether they mean the same. The example makes the
// same samples as the command's own task does of such tables, and draws them in the same order.
TEST(UserScript, FinetunesAsTheCommandDoesAndTheSameOnFourDevices) {
  Scripts scripts;
  const std::string program = scripts.compile(repo_file("examples/rapidformer/finetuner.cpp"));
  scripts.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nyes\nno\na\nb\nc\nd\n");
  const auto table = [&](const std::string& name, int rows) {
    const char* const words[] = {"a", "b c", "c d a", "d"};
    std::string out = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n";
    for (int i = 0; i < rows; ++i)
      out += text(i % 3 == 0 ? 0 : 1, "\t", i, "\t", i, "\t", words[i % 4], "\t",
                  i % 3 == 0 ? "no " : "yes ", words[i / 4 % 4], "\n");
    return scripts.write(name, out);
  };
  std::vector<std::string> flags = split(
      "--task sequence_classification --family bert --num-layers 2 --hidden-size 32 "
      "--num-attention-heads 4 --seq-length 16 --dropout 0 --epochs 10 --lr 0.003 "
      "--global-batch-size 8 --micro-batch-size 2 --log-interval 1 --threads 1",
      ' ');
  flags.insert(flags.end(), {"--tokenizer-name-or-path", scripts.folder / "vocab.txt",
                             "--data-path", scripts.folder.path()});
  table("train.tsv", 60), table("dev.tsv", 21);
  const std::vector<double> one = losses_of(program, flags, scripts.folder / "one");
  const std::vector<double> four =
      losses_of(program, with(flags, {"--devices", "4", "--tensor-model-parallel-size", "2"}),
                scripts.folder / "four");
  ASSERT_EQ(one.size(), four.size());
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(four[i] / one[i], 1, 1e-5) << i;
  const std::vector<double> theirs = losses_of_command(scripts, flags);
  ASSERT_EQ(one.size(), theirs.size());
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(theirs[i] / one[i], 1, 1e-5) << i;
  const std::vector<nlohmann::json> evals = evals_in(scripts.folder / "four"),
                                    of_one = evals_in(scripts.folder / "one");
  ASSERT_EQ(evals.size(), 10u);
  ASSERT_EQ(of_one.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    SCOPED_TRACE(i);
    // Of 21 rows; four devices evaluate batches of 4, one of 2. Rounding grows with the steps.
    EXPECT_NEAR(evals[i]["loss"].get<double>() / of_one[i]["loss"].get<double>(), 1,
                i == 0 ? 1e-5 : 1e-3);
    for (const char* score : {"accuracy", "f1"}) EXPECT_EQ(evals[i][score], of_one[i][score]);
  }
  EXPECT_EQ(evals[9]["epoch"], 10);
  EXPECT_EQ(evals[9]["accuracy"], 1.0) << "one word tells it";
  EXPECT_EQ(evals[9]["f1"], 1.0);
  const std::string predictions = read_file(scripts.folder / "four/predictions-epoch-10.tsv");
  EXPECT_TRUE(predictions.starts_with("row\tlabel\tprediction\n0\t0\t0\n1\t1\t1\n")) << predictions;
  EXPECT_EQ(std::ranges::count(predictions, '\n'), 22) << "each row once";
  const std::string hub = read_file(scripts.folder / "four/hf/config.json");
  EXPECT_NE(hub.find("\"LABEL_1\": 1"), std::string::npos) << hub;
  table("test.tsv", 12);
  std::vector<std::string> tested = with(flags, {"--output", scripts.folder / "tested"});
  tested.insert(tested.begin(), program);
  const ProcessResult result = run_process(tested);
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  EXPECT_NE(result.output.find("\n test: 12 samples, loss 0."), std::string::npos) << result.output;
  EXPECT_NE(result.output.find(", accuracy 1, f1 1\n"), std::string::npos) << result.output;
}

TEST(UserScript, AnOwnLoopIsTheSameOnFourDevices) {
  Scripts scripts;
  const std::string program = scripts.compile(repo_file("examples/rapidformer/own_loop.cpp"));
  const std::vector<std::string> flags = {
      program, "--epochs", "2", "--threads", "1", "--global-batch-size", "32"};
  const ProcessResult one = run_process(flags);
  EXPECT_EQ(one.exit_code, 0) << one.errors;
  EXPECT_NE(one.output.find("epoch 2 loss "), std::string::npos) << one.output;
  EXPECT_EQ(one.errors, "");
  const ProcessResult four = run_process(with(flags, {"--devices", "4"}));
  const std::vector<double> of_one = numbers_in(one.output), of_four = numbers_in(four.output);
  ASSERT_EQ(of_one.size(), 12u) << one.output;
  ASSERT_EQ(of_four.size(), of_one.size()) << four.output;
  for (std::size_t i = 0; i < of_one.size(); ++i) EXPECT_NEAR(of_four[i] / of_one[i], 1, 1e-4) << i;
}

// The example's loss is what --eod-mask-loss makes of the command's own.
TEST(UserScript, PretrainsAsTheCommandDoesAndTheSameOnFourDevices) {
  Scripts scripts;
  const std::string program = scripts.compile(repo_file("examples/rapidformer/pretrainer.cpp"));
  const std::vector<std::string> flags = pretrainer_flags(scripts.folder);
  const std::vector<double> one = losses_of(program, flags, scripts.folder / "one");
  ASSERT_EQ(one.size(), 21u);
  EXPECT_LT(one[19], one[0] - 0.3);
  const std::vector<double> theirs =
      losses_of_command(scripts, with(flags, {"--task", "pretraining", "--eod-mask-loss"}));
  ASSERT_EQ(theirs.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i] / theirs[i], 1, 1e-5) << i;
  const std::vector<std::string> meshes[] = {
      {"--devices", "4", "--tensor-model-parallel-size", "2", "--zero-2-memory-optimization"},
      {"--devices", "4", "--pipeline-model-parallel-size", "2"},
  };
  for (const std::vector<std::string>& mesh : meshes) {
    SCOPED_TRACE(join(mesh, " "));
    const std::vector<double> four =
        losses_of(program, with(flags, mesh), scripts.folder / text("four", mesh.size()));
    ASSERT_EQ(four.size(), one.size());
    // The first ten losses on any mesh differ by rounding alone.
    for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(four[i] / one[i], 1, 1e-5) << i;
  }
}

TEST(UserScript, GoesOnWithTheSameBits) {
  Scripts scripts;
  const std::string program = scripts.compile(repo_file("examples/rapidformer/pretrainer.cpp"));
  const std::vector<std::string> flags = pretrainer_flags(scripts.folder);
  const std::vector<double> whole = losses_of(program, flags, scripts.folder / "whole");
  const std::string parts = scripts.folder / "parts";
  losses_of(program, with(flags, {"--exit-interval", "11"}), parts);
  EXPECT_EQ(losses_of(program, with(flags, {"--resume", "auto"}), parts), whole);
}

}  // namespace tessera
