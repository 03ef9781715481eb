/// Models in Hugging Face's folders, by the command: train from one, on any mesh, and export.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "repo_file.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/files/safetensors.h"
#include "tessera/pretrained/pretrained_model.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFamilies[] = {"gpt2",   "llama", "bert",    "roberta",
                                     "albert", "t5",    "t5_v1_1", "bart"};

std::string some_pairs() {
  std::string out;
  for (int i = 0; static_cast<int>(out.size()) < 3000; ++i)
    out += text("line ", i * 7919 % 1000, "\t", i % 7, " zeile\n");
  return out;
}

class PretrainedCommand : public testing::Test {
 protected:
  PretrainedCommand() {
    folder_.write("text", some_text());
    folder_.write("pairs", some_pairs());
    fs::copy(repo_file("tests/golden/hub"), folder_ / "hub", fs::copy_options::recursive);
  }
  ~PretrainedCommand() override {
    for (const char* name : {"HF_HUB_CACHE", "TESSERA_MODELS"}) ::unsetenv(name);
  }
  /// Pictures, for the golden vit unless sizes say otherwise: 12 of 3 x 12 x 12, of 7 classes, which
  /// are told by their colour.
  void write_pictures(const std::string& name, int channels = 3, std::int64_t most_class = 6,
                      int side = 12) {
    constexpr int kPictures = 12;
    std::vector<float> pixels;
    std::vector<std::int64_t> labels;
    for (int i = 0; i < kPictures; ++i) {
      labels.push_back(std::min<std::int64_t>(i % 7, most_class));
      for (int k = 0; k < channels * side * side; ++k)
        pixels.push_back(static_cast<float>(i % 7 - 3) / 3 + static_cast<float>(k % 5) / 9);
    }
    write_safetensors(
        folder_ / name,
        {TensorSource::of("pixel_values", {DType::F32, {kPictures, channels, side, side}, {}},
                          std::as_bytes(std::span(pixels))),
         TensorSource::of("labels", {DType::I64, {kPictures}, {}},
                          std::as_bytes(std::span(labels)))},
        {});
  }
  /// On a text, or on pairs for a family that translates.
  Ran train(const std::string& output, const std::string& flags) const {
    const bool pairs =
        flags.find("hub/t5") != std::string::npos || flags.find("hub/bart") != std::string::npos;
    return run(words(folder_.expand(
        text("train --threads 1 --data @/", pairs ? "pairs" : "text", " --output @/", output,
             " --steps 2 --global-batch-size 4 --lr 1e-3 --no-eval-at-end ", flags))));
  }
  std::vector<double> losses(const std::string& output) const {
    std::vector<double> out;
    for (const std::string& line : split(read(folder_ / output + "/metrics.jsonl"), '\n')) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.value("kind", "") == "train") out.push_back(json["loss"]);
    }
    return out;
  }

  Folder folder_;
};

TEST_F(PretrainedCommand, TrainsOnEveryMesh) {
  for (const char* family : kFamilies) {
    std::vector<double> plain;
    for (const char* mesh : {"", "--devices 2 --tensor-model-parallel-size 2",
                             "--devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 2",
                             "--devices 4 --zero-stage 3"}) {
      const Ran ran =
          train("run", text("--pretrained-model-name-or-path @/hub/", family, " ", mesh));
      ASSERT_EQ(ran.code, 0) << family << " " << mesh << ran.err;
      const std::vector<double> found = losses("run");
      ASSERT_EQ(found.size(), 2);
      if (plain.empty()) plain = found;
      for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(found[i], plain[i], 1e-5) << family << mesh;
      fs::remove_all(folder_ / "run");
    }
    // A model that knows nothing begins elsewhere.
    fs::remove(folder_ / "hub/" + family + "/model.safetensors");
    const std::string other = folder_ / "hub/" + family + "/tf_model.h5";
    std::ofstream(other) << "weights";
    const Ran lacking = train("run", text("--init-from @/hub/", family));
    EXPECT_EQ(lacking.code, 4);
    EXPECT_NE(lacking.err.find("tf_model.h5"), std::string::npos) << lacking.err;
    const bool asked = family == std::string("gpt2");  // with weights there, or without any
    if (!asked) fs::remove(other);
    const Ran ran =
        train("run", text(asked ? "--init-from-config " : "", "--init-from @/hub/", family));
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE((ran.out + ran.err).find("all weights are initialized at random"), std::string::npos)
        << ran.out;
    EXPECT_GT(std::abs(losses("run")[0] - plain[0]), 1e-3);
    fs::remove_all(folder_ / "run");
  }
}

/// Who begins from the run later would read the export instead, and a checkpoint has its own files.
TEST_F(PretrainedCommand, ExportsIntoNoRunAndNoCheckpoint) {
  ASSERT_EQ(train("run", text("--init-from @/hub/", kFamilies[0])).code, 0);
  for (const char* flags : {"", " --overwrite"}) {
    const Ran run_itself = run(words(folder_.expand(text("export @/run --output @/run", flags))));
    EXPECT_EQ(run_itself.code, 2);
    EXPECT_NE(run_itself.err.find("is the folder of a run"), std::string::npos) << run_itself.err;
    const Ran checkpoint = run(words(
        folder_.expand(text("export @/run --output @/run/checkpoints/step-00000002", flags))));
    EXPECT_EQ(checkpoint.code, 2);
    EXPECT_NE(checkpoint.err.find("is a checkpoint"), std::string::npos) << checkpoint.err;
  }
}

/// Transformers has no class with ELECTRA's generator: of the export and of its return.
TEST_F(PretrainedCommand, ToldIsWhatAnExportLacks) {
  const Ran trained = train("run", "--init-from @/hub/electra --context 16");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE((trained.out + trained.err).find("generator_mlm.bias, which are initialized at random"),
            std::string::npos)
      << trained.out << trained.err;
  const Ran exported = run(words(folder_.expand("export @/run --output @/out")));
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_NE(exported.err.find("notice: transformers' model of this task has no "
                              "embed.generator_project.bias, "),
            std::string::npos)
      << exported.err;
  EXPECT_NE(exported.err.find(" and 23 more: the folder lacks them. To continue training with "
                              "them, give --init-from the run"),
            std::string::npos)
      << exported.err;
  ASSERT_EQ(train("other", "--init-from @/hub/bert").code, 0);
  EXPECT_EQ(
      run(words(folder_.expand("export @/other --output @/other-out"))).err.find("lacks them"),
      std::string::npos);
}

/// What training changed comes out, on whatever mesh it was trained; and goes in again.
TEST_F(PretrainedCommand, ExportsWhatItTrained) {
  for (const char* family : kFamilies) {
    ASSERT_EQ(train("run", text("--init-from @/hub/", family,
                                " --devices 2 --tensor-model-parallel-size 2"))
                  .code,
              0);
    const Ran ran = run(words(folder_.expand("export @/run --output @/out")));
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::string_view name = family;
    EXPECT_NE(ran.out.find(text("wrote ", name.substr(0, name.find('_')), " after step 2")),
              std::string::npos)
        << ran.out;
    const Checkpoint checkpoint = Checkpoint::open(folder_ / "run");
    const PretrainedModel model = PretrainedModel::open(folder_ / "out");
    std::size_t parameters = 0;
    for (const TensorEntry& entry : checkpoint.tensors()) {
      if (entry.role != Role::Parameter) continue;
      ++parameters;
      std::vector<float> ours(static_cast<std::size_t>(entry.type.numel())), theirs = ours;
      checkpoint.read(entry.name, std::as_writable_bytes(std::span(ours)));
      read_whole(model, entry.name, std::as_writable_bytes(std::span(theirs)));
      EXPECT_EQ(ours, theirs) << entry.name;
    }
    EXPECT_EQ(parameters, model.parameters().size());
    // Keys of the folder that it came from, which mean nothing here.
    const auto before = nlohmann::json::parse(read(folder_ / "hub/" + family + "/config.json")),
               after = nlohmann::json::parse(read(folder_ / "out/config.json"));
    const bool pairs = name.starts_with("t5") || name == "bart";
    for (const auto& [key, value] : before.items()) {
      // Special tokens follow the characters of the data, of which theirs would be some.
      if (pairs && key.ends_with("_token_id")) continue;
      EXPECT_EQ(after[key], value) << key;
    }
    if (pairs) {
      EXPECT_EQ(after["eos_token_id"], after["vocab_size"].get<int>() - 1);
    }
    fs::rename(folder_ / "out", folder_ / "hub/" + family + "_out");
    ASSERT_EQ(train("again", text("--init-from @/hub/", family, "_out")).code, 0);
    for (const char* name : {"run", "again", "out"}) fs::remove_all(folder_ / name);
  }
}

TEST_F(PretrainedCommand, PicturesTrainOnEveryMesh) {
  write_pictures("pictures.safetensors");
  const auto train_vit = [&](const std::string& flags) {
    fs::remove_all(folder_ / "run");
    return run(words(folder_.expand(text(
        "train --threads 1 --data @/pictures.safetensors --init-from @/hub/vit --output @/run ",
        "--steps 8 --global-batch-size 4 --lr 1e-2 --held-out 0.25 ", flags))));
  };
  std::vector<double> plain;
  for (const char* mesh : {"", "--devices 2 --tensor-model-parallel-size 2 --sequence-parallel",
                           "--devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 2",
                           "--devices 4 --zero-stage 3", "--devices 2 --context-parallel-size 2"}) {
    const Ran ran = train_vit(mesh);
    ASSERT_EQ(ran.code, 0) << mesh << ran.err;
    const std::vector<double> found = losses("run");
    ASSERT_EQ(found.size(), 8);
    if (plain.empty()) plain = found;
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], plain[i], 1e-4) << mesh;
  }
  EXPECT_LT(plain.back(), plain.front());
  const Ran others = train_vit("--classes 9");
  EXPECT_EQ(others.code, 0) << others.err;
  EXPECT_NE(others.out.find("the classifier is initialized at random: '"), std::string::npos)
      << others.out;
  EXPECT_NE(others.out.find("/hub/vit' classifies 7 labels, but this run 9 labels"),
            std::string::npos)
      << others.out;
  // What was stopped goes on as if it had not been.
  ASSERT_EQ(train_vit("--exit-interval 4").code, 0);
  ASSERT_EQ(run(words(folder_.expand("train --output @/run --resume auto "
                                     "--data @/pictures.safetensors --steps 8 --threads 1 "
                                     "--init-from @/hub/vit --global-batch-size 4 --lr 1e-2 "
                                     "--held-out 0.25")))
                .code,
            0);
  EXPECT_EQ(losses("run"), plain);
  ASSERT_EQ(run(words(folder_.expand("export @/run --output @/out"))).code, 0);
  EXPECT_EQ(PretrainedModel::open(folder_ / "out").parameters().size(),
            PretrainedModel::open(folder_ / "hub/vit").parameters().size());
  EXPECT_EQ(run(words("verify --family vit --image-size 8 --patch-size 4 --classes 5 --layers 2 "
                      "--width 16 --heads 2 --devices 2 --zero-stage 1 --global-batch-size 4"))
                .code,
            0);
  EXPECT_EQ(run(words("plan --family vit --image-size 8 --patch-size 4 --classes 5 --layers 2 "
                      "--width 16 --heads 2"))
                .code,
            0);
}

/// config.toml of a run says what was given, and nothing that follows from it: each kind of run
/// goes on from its own, and is planned and verified by it.
TEST_F(PretrainedCommand, WhatARunWroteBeginsItAgain) {
  write_pictures("pictures.safetensors");
  std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyz0123456789"))
    pieces += text(c, "\n##", c, "\n");
  folder_.write("vocab.txt", pieces);
  std::string rows = "text,label\n", lines;
  for (int i = 0; i < 20; ++i) {
    rows += text("row ", i, i % 2 ? ",odd\n" : ",even\n");
    lines += text("{\"text\": \"line ", i, " of twenty\"}\n");
  }
  folder_.write("rows.csv", rows);
  folder_.write("lines.json", lines);
  ASSERT_EQ(run(words(folder_.expand("preprocess_data --input @/lines.json --output-prefix @/ids "
                                     "--tokenizer-type BertWordPieceLowerCase --vocab-file "
                                     "@/vocab.txt")))
                .code,
            0);
  const std::string small = "--layers 1 --width 16 --heads 2 --context 8 ";
  const std::pair<const char*, std::string> kinds[] = {
      {"characters", small + "--data @/text"},
      {"a tokenizer", small + "--data @/text --tokenizer @/vocab.txt"},
      {"a vocab-file", small + "--data @/text --tokenizer-type BertWordPieceLowerCase "
                               "--vocab-file @/vocab.txt"},
      {"token files", small + "--data @/ids_text_document --tokenizer @/vocab.txt"},
      {"a classifier", small + "--family bert --task sequence_classification --data @/rows.csv "
                               "--text-column text --label-column label --tokenizer @/vocab.txt"},
      {"pictures", "--data @/pictures.safetensors --init-from @/hub/vit"},
      {"weights of a run, which has pictures",
       "--data @/pictures.safetensors --init-from @/run_of_pictures"},
  };
  for (const auto& [kind, flags] : kinds) {
    SCOPED_TRACE(kind);
    const auto ran = [&](const std::string& line) {
      const Ran out = run(words(folder_.expand(line)));
      EXPECT_EQ(out.code, 0) << line << "\n" << out.err;
    };
    ran(text("train --steps 2 --exit-interval 1 --global-batch-size 2 --threads 1 --output @/run ",
             flags));
    const std::string config = "--config @/run/config.toml";
    ran("plan " + config);
    ran(text("verify --steps 1 --devices 2 ", config));
    ran(text("train --resume auto ", config));
    EXPECT_EQ(losses("run").size(), 2);
    ran(text("train --output @/second ", config));
    if (std::string(kind) == "pictures")
      fs::rename(folder_ / "second", folder_ / "run_of_pictures");
    for (const char* name : {"run", "second"}) fs::remove_all(folder_ / name);
  }
}

TEST_F(PretrainedCommand, PicturesThatDoNotFitAreToldSo) {
  const auto said = [&](const std::string& flags, const std::string& what) {
    const Ran ran = run(words(folder_.expand(text("train --output @/run --steps 1 ", flags))));
    EXPECT_NE(ran.code, 0) << flags;
    EXPECT_NE(ran.err.find(what), std::string::npos) << what << "\nnot in\n" << ran.err;
  };
  write_pictures("grey.safetensors", 1);
  write_pictures("good.safetensors");
  const std::string vit = "--init-from @/hub/vit ";
  said(vit + "--data @/grey.safetensors",
       "pictures are 1 x 12 x 12 (channels, height, width), and "
       "image-channels 3 with image-size 12 makes them 3 x 12 x 12");
  said(
      "--family vit --image-size 12 --patch-size 4 --classes 5 --layers 1 --data "
      "@/good.safetensors",
      "a picture is of class 6, but classes is 5, numbered from 0; give classes 7 or more");
  said("--family vit --image-size 12 --patch-size 5 --classes 7 --data @/good.safetensors",
       "patch-size 5 does not divide image-size 12");
  said(vit + "--data @/text", "family vit trains on pictures, but data");
  said("--family gpt2 --data @/good.safetensors",
       "family gpt2 trains on texts or token files, but");
  said(vit + "--data @/hub/vit/model.safetensors", "has no tensor 'pixel_values'");
  said(vit + "--data @/good.safetensors --vocabulary bytes", "does nothing with pictures");
  said(vit + "--data @/good.safetensors --held-out 0.99",
       "none of its 12 pictures is in this part");
}

/// After each epoch every held-out picture has a line, whose labels are those of the file.
TEST_F(PretrainedCommand, ClassesOfPicturesArePredictedAfterEachEpoch) {
  write_pictures("good.safetensors");
  for (const char* mesh : {"", "--devices 2 --pipeline-model-parallel-size 2"}) {
    const Ran ran = run(words(folder_.expand(text(
        "train --threads 1 --family vit --image-size 12 --patch-size 4 --classes 7 --layers 2 ",
        "--heads 2 --width 8 --data @/good.safetensors --held-out 0.4 --epochs 2 --lr 1e-3 ",
        "--global-batch-size 4 --micro-batch-size 2 --output @/run ", mesh))));
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::vector<std::string> lines =
        split(read(folder_ / "run/predictions-epoch-2.tsv"), '\n');
    ASSERT_GE(lines.size(), 6U);
    EXPECT_EQ(lines[0], "row\tlabel\tprediction");
    const std::size_t rows = lines.size() - 2;  // without the header and what is behind the end
    for (std::size_t row = 0; row < rows; ++row)
      EXPECT_TRUE(lines[row + 1].starts_with(text(row, "\t", (12 - rows + row) % 7, "\t")))
          << lines[row + 1];
    EXPECT_NE(read(folder_ / "run/metrics.jsonl").find("\"kind\":\"eval\",\"epoch\":2"),
              std::string::npos);
    fs::remove_all(folder_ / "run");
  }
}

TEST_F(PretrainedCommand, SamplesMayBeShorterThanPositions) {
  const Ran began = train("run", "--init-from @/hub/gpt2 --context 8");
  ASSERT_EQ(began.code, 0) << began.err;
  EXPECT_NE(began.out.find("has weights and no tokenizer, so the characters of the data"),
            std::string::npos)
      << began.out;
  EXPECT_EQ(run(words(folder_.expand("sample @/run --prompt li --tokens 12"))).code, 0);
  const Ran longer = train("longer", "--init-from @/hub/gpt2 --context 17");
  EXPECT_EQ(longer.code, 2);
  EXPECT_NE(longer.err.find("positions is 16; give 0, or at least the context of 17"),
            std::string::npos)
      << longer.err;
  const Ran exported = run(words(folder_.expand("export @/run --output @/out --dtype bf16")));
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_NE(exported.err.find("the folder has no tokenizer"), std::string::npos) << exported.err;
  EXPECT_EQ(PretrainedModel::open(folder_ / "out").config().positions, 16);
}

/// The tokenizer of the folder is the run's, with its own [CLS] and [MASK]; and goes out again.
TEST_F(PretrainedCommand, TheFolderHasATokenizer) {
  std::string tokens = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nline\n";
  for (char digit = '0'; digit <= '9'; ++digit) tokens += text(digit, "\n##", digit, "\n");
  while (std::ranges::count(tokens, '\n') < 61) tokens += text("x", tokens.size(), "\n");
  folder_.write("hub/bert/vocab.txt", tokens);
  const Ran ran = train("run", "--init-from @/hub/bert");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Ran exported = run(words(folder_.expand("export @/run --output @/out")));
  EXPECT_EQ(exported.code, 0);
  EXPECT_EQ(exported.err, "");
  EXPECT_EQ(read(folder_ / "out/vocab.txt"), tokens);
  ASSERT_EQ(train("again", "--init-from @/out").code, 0);
  // A tokenizer may have more tokens than the model has rows, in a plan too.
  folder_.write("hub/bert/vocab.txt", tokens + "without\na\nrow\n");
  const std::string flags = "--init-from @/hub/bert --data @/text --steps 1 --lr 0.001 ";
  const Ran larger = run(words(folder_.expand("train --output @/larger --threads 1 " + flags)));
  EXPECT_EQ(larger.code, 0) << larger.err;
  EXPECT_NE(larger.out.find("the tokenizer has 64 tokens"), std::string::npos) << larger.out;
  const Ran plan = run(words(folder_.expand("plan " + flags)));
  EXPECT_EQ(plan.code, 0) << plan.err;
  folder_.write("hub/bert/vocab.txt", tokens);
  // A file of somebody else's is not lost to it.
  fs::create_directories(folder_ / "taken");
  folder_.write("taken/vocab.txt", "mine");
  const Ran taken = run(words(folder_.expand("export @/run --output @/taken")));
  EXPECT_EQ(taken.code, 2);
  EXPECT_NE(taken.err.find("/taken/vocab.txt' exists"), std::string::npos) << taken.err;
  EXPECT_EQ(read(folder_ / "taken/vocab.txt"), "mine");
  EXPECT_EQ(train("other", "--init-from @/hub/bert --vocabulary bytes").code, 2)
      << "256 bytes are more than the 61 rows";
}

/// As a run that begins with it, on every mesh; its tokenizer may put a token before each text.
TEST_F(PretrainedCommand, TheFolderWritesText) {
  const auto said = [&](const std::string& flags) {
    return run(words(folder_.expand("sample " + flags + " --tokens 9 --temperature 0")));
  };
  for (const std::string family : {"gpt2", "llama"}) {
    const std::string hub = "@/hub/" + family;
    EXPECT_NE(said(hub + " --prompt ab").err.find("has no tokenizer"), std::string::npos);
    nlohmann::json tokenizer = {
        {"version", "1.0"},
        {"added_tokens", nlohmann::json::array()},
        {"pre_tokenizer",
         {{"type", "Split"}, {"pattern", {{"Regex", "."}}}, {"behavior", "Isolated"}}},
        {"decoder", {{"type", "Fuse"}}},
        {"model", {{"type", "WordLevel"}, {"unk_token", "!"}, {"vocab", {{"!", 60}}}}}};
    for (int i = 0; i < 60; ++i) tokenizer["model"]["vocab"][std::string(1, char('C' + i))] = i;
    const std::string file = "hub/" + family + "/tokenizer.json";
    folder_.write("hub/" + family + "/tokenizer_config.json",
                  R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
    folder_.write(file, tokenizer.dump());
    const Ran began =
        run(words(folder_.expand(text("train --data @/text --steps 0 --output @/", family,
                                      " --global-batch-size 4 --init-from ", hub))));
    ASSERT_EQ(began.code, 0) << began.err;
    const Ran of_run = said(text("@/", family, " --prompt ab"));
    ASSERT_EQ(of_run.code, 0) << of_run.err;
    for (const char* mesh : {"", "--devices 2 --tensor-model-parallel-size 2",
                             "--devices 2 --pipeline-model-parallel-size 2"}) {
      const Ran ran = said(text(hub, " --prompt ab ", mesh));
      EXPECT_EQ(ran.code, 0) << ran.err;
      EXPECT_EQ(ran.out, of_run.out) << mesh;
    }
    // More tokens than can be counted, and an end behind the first.
    const Ran endless = run(words(folder_.expand(
        text("sample ", hub, " --prompt ab --temperature 0 --tokens 9223372036854775807 --stop ",
             of_run.out.substr(2, 1)))));
    EXPECT_EQ(endless.code, 0) << endless.err;
    EXPECT_EQ(endless.out, "ab\n");
    tokenizer["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "c"}, {"type_id", 0}}}},
          {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"pair", {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"special_tokens", {{"c", {{"id", "c"}, {"ids", {32}}, {"tokens", {"c"}}}}}}};
    folder_.write(file, tokenizer.dump());
    const Ran framed = said(hub + " --prompt ab"), none = said(hub);
    EXPECT_EQ("c" + framed.out, said(text("@/", family, " --prompt cab")).out) << framed.err;
    EXPECT_EQ("c" + none.out, said(text("@/", family, " --prompt c")).out) << none.err;
    fs::remove(folder_ / "hub/" + family + "/model.safetensors");
    EXPECT_EQ(said(hub + " --prompt ab").code, 4) << "there are no weights";
  }
}

TEST_F(PretrainedCommand, NamesAreLookedUp) {
  fs::create_directories(folder_ / "cache/models--org--tiny/refs");
  fs::create_directories(folder_ / "cache/models--org--tiny/snapshots");
  folder_.write("cache/models--org--tiny/refs/main", "0123abc\n");
  fs::copy(folder_ / "hub/gpt2", folder_ / "cache/models--org--tiny/snapshots/0123abc");
  ::setenv("HF_HUB_CACHE", (folder_ / "cache").c_str(), 1);
  EXPECT_EQ(train("run", "--pretrained-model-name-or-path org/tiny").code, 0);
  const Ran none = train("none", "--pretrained-model-name-or-path org/other");
  EXPECT_EQ(none.code, 4);
  EXPECT_NE(none.err.find("hf download org/other"), std::string::npos) << none.err;
  folder_.write("names.toml", "mine = \"hub/llama\"\n\"org/other\" = 3\n");
  ::setenv("TESSERA_MODELS", (folder_ / "names.toml").c_str(), 1);
  const Ran mine = train("mine", "--init-from mine");
  EXPECT_EQ(mine.code, 0) << mine.err;
  EXPECT_NE(train("x", "--init-from org/other").err.find("is not a string"), std::string::npos);
  // A run that goes on needs the model no more.
  ::unsetenv("TESSERA_MODELS");
  fs::remove_all(folder_ / "cache");
  EXPECT_EQ(train("run", "--pretrained-model-name-or-path org/tiny --resume auto").code, 0);
}

TEST_F(PretrainedCommand, TellsWhatIsNotTaken) {
  const auto told = [&](const Ran& ran, const std::string& what) {
    EXPECT_EQ(ran.code, 0) << ran.err;
    return (ran.out + ran.err).find(what) != std::string::npos;
  };
  // Tokens of the data have the ids by which the folder has its special ones.
  const std::string tokens = "(padding, start, end), not 0,0,1 as in config.json of '";
  EXPECT_TRUE(told(train("run", "--init-from @/hub/t5"), tokens));
  EXPECT_FALSE(told(train("other", "--init-from @/hub/t5 --special-tokens 58,58,59"), tokens));
  // A first value of weights that are there.
  write_pictures("small.safetensors", 2, 6, 9);
  const std::string dinov2 = repo_file("tests/golden/families/dinov2");
  const auto train_dinov2 = [&](const std::string& flags) {
    return run(words(folder_.expand(
        text("train --threads 1 --data @/small.safetensors --overwrite --output @/run --steps 1 ",
             "--global-batch-size 4 --held-out 0.25 --init-from ", dinov2, " ", flags))));
  };
  const std::string scale =
      "--layer-scale 0.1 does nothing: it is the first value of weights that '";
  EXPECT_TRUE(told(train_dinov2("--layer-scale 0.1"), scale));
  EXPECT_FALSE(told(train_dinov2("--layer-scale 0.1 --init-from-config"), scale));
  EXPECT_FALSE(told(train_dinov2(""), scale));
  for (const char* value : {"-1", "0"})
    EXPECT_NE(train_dinov2(text("--layer-scale ", value))
                  .err.find(text("layer-scale is ", value, "; it must be above 0")),
              std::string::npos)
        << value;
}

TEST_F(PretrainedCommand, RefusesWhatDoesNotFit) {
  const auto said = [&](const std::string& flags) {
    const Ran ran = train("x", flags);
    EXPECT_NE(ran.code, 0) << flags;
    EXPECT_FALSE(fs::exists(folder_ / "x")) << flags;
    return ran.err;
  };
  const auto expect = [&](const std::string& err, const std::string& what) {
    EXPECT_NE(err.find(what), std::string::npos) << err;
  };
  expect(said("--init-from @/hub/gpt2 --width 64 --heads 4"), "width is 32 there and 64 here");
  expect(said("--init-from @/hub/gpt2 --family llama"), "family is gpt2 there and llama here");
  // A value that the field does not take is all that is said, not what follows from it.
  std::string config = read(folder_ / "hub/gpt2/config.json");
  folder_.write("hub/gpt2/config.json",
                config.replace(config.find("1e-05"), std::strlen("1e-05"), "-1"));
  EXPECT_EQ(said("--init-from @/hub/gpt2"),
            folder_.expand("error: @/hub/gpt2/config.json: layer_norm_epsilon is -1; it must be a "
                           "number from 0 to 1\n"));
  folder_.write("hub/gpt2/config.json", "{\"model_type\": \"gpt2\", \"n_layer\": 3");
  expect(said("--init-from @/hub/gpt2"), "is not a JSON object");
  const auto exported = [&](const std::string& flags) {
    return run(words(folder_.expand("export " + flags))).err;
  };
  expect(exported("@/none --output @/out"), "none");
  expect(exported("@/hub"), "output is missing");
  expect(exported("@/hub --output @/o --dtype f64"), "dtype is 'f64'");
  expect(exported("@/hub --output @/o --max-shard-size 5"), "max-shard-size is '5'");
  folder_.write("pairs", "a b\tc d\n" + std::string("e f\tg h\n"));
  ASSERT_EQ(run(words(folder_.expand("train --preset transformer-tiny --threads 1 --steps 0 --data "
                                     "@/pairs --held-out 0 --no-eval-at-end --global-batch-size 1 "
                                     "--output @/t")))
                .code,
            0);
  expect(exported("@/t --output @/o"), "family transformer has no Hugging Face format");
}

}  // namespace
}  // namespace tessera
