/// Folders of Hugging Face by the command, where their config.json or the flags ask for what is not
/// usual: what is read is what is trained, planned, exported and described, or it is refused.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "repo_file.h"
#include "tessera/checkpoint/checkpoint_manifest.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class HubCommand : public testing::Test {
 protected:
  HubCommand() {
    folder_.write("text", some_text());
    std::string pairs, labelled = "sentence\tlabel\n", scores = labelled;
    for (int i = 0; i < 40; ++i) {
      pairs += text("line ", i * 7 % 10, "\t", i % 7, " zeile\n");
      labelled += text("line ", i * 7 % 10, "\t", i % 3 == 0 ? "bad" : "good", "\n");
      scores += text("line ", i * 7 % 10, "\t", i % 5, ".", i % 3, "\n");
    }
    folder_.write("pairs", pairs);
    folder_.write("labels.tsv", labelled);
    folder_.write("scores.tsv", scores);
    fs::copy(repo_file("tests/golden/hub"), folder_ / "hub", fs::copy_options::recursive);
  }

  Ran ran(const std::string& line) const { return run(words(folder_.expand(line))); }
  Ran train(const std::string& output, const std::string& flags) const {
    return ran(text("train --threads 1 --output @/", output,
                    " --steps 2 --global-batch-size 4 --lr 1e-3 --no-eval-at-end ", flags));
  }
  json config(const std::string& name) const {
    return json::parse(read(folder_ / name + "/config.json"));
  }
  void set(const std::string& name, const json& keys) const {
    json changed = config(name);
    changed.update(keys);
    std::ofstream(folder_ / name + "/config.json") << changed.dump();
  }
  /// A folder of config.json alone.
  void config_alone(const std::string& from, const std::string& name, const json& keys) const {
    fs::create_directory(folder_ / name);
    fs::copy(folder_ / from + "/config.json", folder_ / name + "/config.json");
    set(name, keys);
  }
  /// A tokenizer of so many words: "w0", "w1", ..., and "line".
  void write_tokenizer(const std::string& name, int size, const json& settings) const {
    json vocabulary = {{"[UNK]", 0}, {"[PAD]", 1}, {"line", 2}};
    for (int id = 3; id < size; ++id) vocabulary[text("w", id)] = id;
    const json tokenizer = {
        {"version", "1.0"},
        {"pre_tokenizer", {{"type", "Whitespace"}}},
        {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "[UNK]"}}}};
    folder_.write(name + "/tokenizer.json", tokenizer.dump());
    json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
    config.update(settings);
    folder_.write(name + "/tokenizer_config.json", config.dump());
  }
  std::vector<double> losses(const std::string& output) const {
    std::vector<double> out;
    for (const std::string& line : split(read(folder_ / output + "/metrics.jsonl"), '\n')) {
      const auto row = json::parse(line, nullptr, false);
      if (row.is_object() && row.value("kind", "") == "train") out.push_back(row["loss"]);
    }
    return out;
  }

  Folder folder_;
};

void expect_has(const std::string& found, const std::string& what) {
  EXPECT_NE(found.find(what), std::string::npos) << "not '" << what << "' in\n" << found;
}

TEST_F(HubCommand, SourcesAndTargetsMayHaveUnequalLengths) {
  for (const char* family : {"t5", "t5_v1_1", "bart"}) {
    for (const char* lengths :
         {"--source-context 16 --context 10", "--source-context 8 --context 14"}) {
      const Ran trained =
          train("run", text("--data @/pairs --overwrite --init-from @/hub/", family, " ", lengths));
      EXPECT_EQ(trained.code, 0) << family << " " << lengths << trained.err;
    }
  }
}

/// Shapes that no golden folder has.
TEST_F(HubCommand, OtherHeadsTrainOnEveryMesh) {
  const struct {
    const char *name, *from, *data;
    json keys;
  } rows[] = {
      {"t5 with wide heads", "hub/t5", "pairs", {{"d_kv", 12}}},
      {"t5 with narrow heads", "hub/t5_v1_1", "pairs", {{"d_kv", 4}}},
      {"llama with biases", "hub/llama", "text", {{"attention_bias", true}}},
      {"llama with wide heads", "hub/llama", "text", {{"head_dim", 12}}},
      {"both", "hub/llama", "text", {{"head_dim", 4}, {"attention_bias", true}}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    fs::remove_all(folder_ / "other");
    config_alone(row.from, "other", row.keys);
    std::vector<double> plain;
    for (const char* mesh : {"", "--devices 2 --tensor-model-parallel-size 2",
                             "--devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 2"}) {
      const Ran trained =
          train("run", text("--overwrite --data @/", row.data, " --init-from @/other ", mesh));
      ASSERT_EQ(trained.code, 0) << mesh << trained.err;
      const std::vector<double> found = losses("run");
      ASSERT_EQ(found.size(), 2U);
      if (plain.empty()) plain = found;
      for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(found[i], plain[i], 1e-5) << mesh;
    }
    // What it has of its own comes out, and goes in again.
    ASSERT_EQ(ran("export @/run --output @/out --overwrite").code, 0);
    for (const auto& [key, value] : row.keys.items()) EXPECT_EQ(config("out")[key], value) << key;
    EXPECT_EQ(train("again", text("--overwrite --init-from @/out --data @/", row.data)).code, 0);
  }
}

/// No rank takes the weights that lie there.
TEST_F(HubCommand, ConfigsAloneAreOneModelOnEveryMesh) {
  std::vector<double> plain;
  for (const char* mesh : {"", "--devices 2 --tensor-model-parallel-size 2"}) {
    const Ran trained = train("run", text("--overwrite --data @/text --init-from @/hub/llama ",
                                          "--init-from-config ", mesh));
    ASSERT_EQ(trained.code, 0) << mesh << trained.err;
    const std::vector<double> found = losses("run");
    if (plain.empty()) plain = found;
    ASSERT_EQ(found.size(), plain.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], plain[i], 1e-5) << mesh;
  }
}

TEST_F(HubCommand, PlansAndChecksAreOfTheFoldersModelFromItsConfigAlone) {
  config_alone("hub/llama", "alone", json::object());
  const char* const commands[] = {"plan --context 16 ", "verify --steps 1 --context 8 "};
  for (const char* command : commands) {
    const Ran alone = ran(text(command, "--init-from @/alone"));
    EXPECT_EQ(alone.code, 0) << alone.err;
  }
  const auto planned = [&](const char* folder) {
    const Ran plan = ran(text("plan --json --context 16 --init-from @/", folder));
    EXPECT_EQ(plan.code, 0) << plan.err;
    json out = json::parse(plan.out);
    return out.contains("planned_bytes") ? out["planned_bytes"] : out["parameters"];
  };
  EXPECT_EQ(planned("alone"), planned("hub/llama"));
  EXPECT_NE(planned("alone"), planned("hub/gpt2"));
  for (const char* command :
       {"plan ", "verify ", "bench --data @/text ", "train --data @/text --output @/x "}) {
    const Ran none = ran(text(command, "--init-from @/none"));
    EXPECT_EQ(none.code, 4) << command;
    expect_has(none.err, folder_.expand("no checkpoint '@/none'"));
  }
}

/// What transformers needs of a classifier's config.json: a batch of several texts, and the loss
/// that was trained.
TEST_F(HubCommand, ClassifiersSayWhatWasTrained) {
  const struct {
    const char* golden;
    json settings;  // of the tokenizer
    json pad;       // what the export says
  } rows[] = {
      {"gpt2_classes", {{"unk_token", "[UNK]"}, {"pad_token", "[PAD]"}}, 1},
      {"llama_classes", {{"unk_token", "[UNK]"}, {"pad_token", "[PAD]"}}, 1},
      {"gpt2_classes", {{"unk_token", "[UNK]"}, {"eos_token", "line"}}, 2},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(text(row.golden, " ", row.settings.dump()));
    const std::string hub = text("hub/", row.golden);
    write_tokenizer(hub, 61, row.settings);
    set(hub, {{"pad_token_id", nullptr}, {"problem_type", "multi_label_classification"}});
    const Ran trained = train("run", text("--overwrite --data @/labels.tsv --task ",
                                          "sequence_classification --init-from @/", hub));
    ASSERT_EQ(trained.code, 0) << trained.err;
    expect_has(trained.out + trained.err, "was trained for another task");
    ASSERT_EQ(ran("export @/run --output @/out --overwrite").code, 0);
    const json found = config("out");
    EXPECT_EQ(found["pad_token_id"], row.pad);
    EXPECT_FALSE(found.contains("problem_type"));
    EXPECT_EQ(found["id2label"].size(), 2U);
  }
}

/// A folder's problem_type names its task, as transformers' classes do; one label is a number.
TEST_F(HubCommand, ClassifiersOfNumbersAndOfSeveralLabelsAreFolders) {
  write_tokenizer("hub/bert_classes", 57, {{"unk_token", "[UNK]"}});
  folder_.write("sets.tsv", "sentence\tlabel\nline w3\tred,blue\nline w4\t\nline w5\tblue\n");
  const struct {
    const char *task, *data, *score;
    std::size_t labels;
  } rows[] = {{"regression", "scores.tsv", "mae", 1},
              {"multi_label_classification", "sets.tsv", "f1_macro", 2}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.task);
    const std::string data = text(" --data @/", row.data);
    const Ran trained = train("run", text("--overwrite --valid-data @/", row.data, data, " --task ",
                                          row.task, " --init-from @/hub/bert_classes"));
    ASSERT_EQ(trained.code, 0) << trained.err;
    expect_has(trained.out + trained.err, "the classifier is initialized at random");
    ASSERT_EQ(ran("export @/run --output @/out --overwrite").code, 0);
    json found = config("out");
    EXPECT_EQ(found["problem_type"], row.task);
    EXPECT_EQ(found["id2label"].size(), row.labels);
    const auto scores = [&](const char* of) {
      const std::string out = ran(text("evaluate @/", of, data)).out;
      return out.substr(out.find("loss"));
    };
    expect_has(scores("out"), row.score);
    EXPECT_EQ(scores("out"), scores("run"));
    EXPECT_EQ(ran(text("predict @/out", data)).out, ran(text("predict @/run", data)).out);
    // Of its own task the head is taken.
    const Ran more = train("more", text("--overwrite", data, " --init-from @/out"));
    ASSERT_EQ(more.code, 0) << more.err;
    EXPECT_EQ((more.out + more.err).find("initialized at random"), std::string::npos) << more.out;
    std::ofstream(folder_ / "out/config.json") << (found.erase("problem_type"), found).dump();
    expect_has(ran("inspect @/out").out,
               text("  task        ", row.labels == 1 ? "regression" : "sequence_classification"));
    set("out", {{"problem_type", "ranking"}});
    expect_has(ran("inspect @/out").err, "problem_type is \"ranking\"; the family learns ");
  }
}

TEST_F(HubCommand, WhatDoesNotFitIsNamed) {
  write_tokenizer("hub/gpt2", 70, {{"unk_token", "[UNK]"}});
  std::string wide = "line w3\nline w65 w4\n";
  for (int i = 0; i < 40; ++i) wide += "line w5\n";
  folder_.write("wide", wide);
  config_alone("hub/bert_classes", "score",
               {{"problem_type", "regression"},
                {"id2label", {{"0", "LABEL_0"}}},
                {"label2id", {{"LABEL_0", 0}}}});
  config_alone("hub/gpt2", "word", {{"n_embd", "wide"}});
  write_tokenizer("hub/llama_classes", 61, {{"unk_token", "[UNK]"}, {"pad_token", "[PAD]"}});
  set("hub/llama_classes", {{"pad_token_id", 7}});
  write_tokenizer("hub/gpt2_classes", 61, {{"unk_token", "[UNK]"}, {"pad_token", "[PAD]"}});
  set("hub/gpt2_classes", {{"pad_token_id", nullptr}});
  config_alone("hub/bart", "forced", {{"forced_bos_token_id", 5}});
  config_alone("hub/bart", "started", json::object());
  folder_.write("started/generation_config.json", R"({"decoder_start_token_id": 6})");
  const struct {
    const char *name, *line;
    int code;
    const char* what;
  } rows[] = {
      {"an id beyond the table",
       "train --output @/x --steps 1 --init-from @/hub/gpt2 --context 4 --data @/wide", 3,
       "@/wide"},
      {"names for a folder of scores",
       "train --output @/x --steps 1 --init-from @/score --data @/labels.tsv", 3,
       "@/labels.tsv' line 2: column 'label' has 'bad', and task regression learns finite numbers"},
      {"scores for a task of names",
       "train --output @/x --steps 1 --family bert --task sequence_classification --data "
       "@/scores.tsv",
       3, "each of 15 numbers would be its own class; give --task regression to learn scores"},
      {"a classifier and its tokenizer with padding of their own",
       "train --output @/x --steps 1 --init-from @/hub/llama_classes --data @/labels.tsv", 3,
       "pad_token_id of config.json is 7, and padding of the tokenizer is 1"},
      {"the same, to predict", "predict @/hub/llama_classes --data @/labels.tsv", 3,
       "pad_token_id of config.json is 7, and padding of the tokenizer is 1"},
      {"a trained classifier without padding", "predict @/hub/gpt2_classes --data @/labels.tsv", 3,
       "pad_token_id of config.json is null, so the classifier would read the last token"},
      {"another first token", "inspect @/forced", 3,
       "@/forced/config.json: forced_bos_token_id is 5; texts begin with token"},
      {"another token to start from", "inspect @/started", 3,
       "@/started/generation_config.json: decoder_start_token_id is 6; texts begin with token"},
      {"a run in the folder of a model",
       "train --output @/hub/gpt2 --steps 1 --init-from @/hub/gpt2 --context 4 --data @/text", 2,
       "the folder would hold two models"},
      {"plan: data that is not there", "plan --family vit --data @/nofile", 3,
       "no file '@/nofile'"},
      {"inspect: a key", "inspect @/word", 3, "n_embd is \"wide\""},
      {"inspect: no folder of a model", "inspect @/hub", 4, "@/hub"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Ran found = ran(row.line);
    EXPECT_EQ(found.code, row.code) << found.err;
    expect_has(found.err, folder_.expand(row.what));
    EXPECT_FALSE(fs::exists(folder_ / "x"));
  }
}

/// The record is of another model than the weights: nothing is written.
TEST_F(HubCommand, ExportRefusesARecordThatContradictsItsWeights) {
  ASSERT_EQ(train("run", "--data @/text --init-from @/hub/gpt2").code, 0);
  const std::string manifest = folder_ / "run/checkpoints/step-00000002/" + kManifestName;
  const std::string intact = read(manifest);
  for (const auto& [name, value] : {std::pair("vocab-size", "1000000"), std::pair("layers", "1"),
                                    std::pair("ffn-width", "64"), std::pair("heads", "64")}) {
    SCOPED_TRACE(name);
    Manifest changed = parse_manifest(intact, manifest);
    json fields = json::parse(changed.record.texts.at("config"));
    ASSERT_TRUE(fields.contains(name));
    fields[name] = value;
    changed.record.texts["config"] = fields.dump(1);
    std::ofstream(manifest, std::ios::binary) << to_text(changed);
    const Ran exported = ran("export @/run --output @/out");
    EXPECT_NE(exported.code, 0) << exported.out;
    EXPECT_FALSE(fs::exists(folder_ / "out/config.json"));
  }
}

TEST_F(HubCommand, InspectDescribesAFolder) {
  write_tokenizer("hub/bert_classes", 61, {{"unk_token", "[UNK]"}});
  const Ran found = ran("inspect @/hub/bert_classes");
  ASSERT_EQ(found.code, 0) << found.err;
  for (const char* line :
       {"a model of Hugging Face in '@/hub/bert_classes'\n", "  family      bert\n",
        "  task        sequence_classification\n", "layers 2, heads 4, ", " of f32), ",
        "  tokenizer   61 ids\n", "  trains for  pretraining (BertForPreTraining)",
        "question_answering (BertForQuestionAnswering)"})
    expect_has(found.out, folder_.expand(line));
  config_alone("hub/gpt2", "alone", json::object());
  expect_has(ran("inspect @/alone").out, "  tensors     none: config.json alone\n");
  // It refuses what a run refuses, in the same words.
  folder_.write("alone/tf_model.h5", "weights");
  const Ran inspected = ran("inspect @/alone"),
            trained = train("x", "--data @/text --init-from @/alone");
  EXPECT_EQ(inspected.code, trained.code);
  EXPECT_EQ(inspected.err, trained.err);
  expect_has(inspected.err, "has no model.safetensors, but tf_model.h5");
}

}  // namespace
}  // namespace tessera
