/// Vectors of texts by the command: from columns of tables to a folder of sentence-transformers.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "repo_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SentenceCommand : public testing::Test {
 protected:
  SentenceCommand() {
    std::string pairs = "anchor\tpositive\n", triples = "q\ta\tb\n";
    for (int i = 0; i < 40; ++i) {
      pairs += text("what is ", i % 13, "\tit is ", i % 13, " and ", i, "\n");
      triples += text("what is ", i, "\tit is ", i, "\tit is ", i + 7, "\n");
    }
    folder_.write("pairs.tsv", pairs);
    folder_.write("triples.tsv", triples);
    fs::create_directory(folder_ / "words");
    folder_.write("words/tokenizer.json", tokenizer());
    folder_.write("words/tokenizer_config.json",
                  R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
    folder_.write("labels.tsv",
                  "sentence\tlabel\nit is 1\ta\nit is 2\tb\nit is 3\ta\nit is 4\tb\n");
  }

  /// Of words, with [CLS] and [SEP] around a text.
  static std::string tokenizer() {
    json vocabulary = {{"[PAD]", 0}, {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3}, {"what", 4}};
    for (const char* word : {"is", "it", "and"}) vocabulary[word] = vocabulary.size();
    for (int i = 0; i < 50; ++i) vocabulary[text(i)] = vocabulary.size();
    const auto special = [](const char* token) {
      return json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
    };
    const json a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
               b = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
    json out = {{"version", "1.0"},
                {"pre_tokenizer", {{"type", "Whitespace"}}},
                {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "[UNK]"}}}};
    out["post_processor"] = {{"type", "TemplateProcessing"},
                             {"single", {special("[CLS]"), a, special("[SEP]")}},
                             {"pair", {special("[CLS]"), a, special("[SEP]"), b, special("[SEP]")}},
                             {"special_tokens",
                              {{"[CLS]", {{"id", "[CLS]"}, {"ids", {2}}, {"tokens", {"[CLS]"}}}},
                               {"[SEP]", {{"id", "[SEP]"}, {"ids", {3}}, {"tokens", {"[SEP]"}}}}}}};
    return out.dump();
  }

  Ran ran(const std::string& line) const { return run(words(folder_.expand(line))); }
  /// From random weights, unless `model` says otherwise.
  Ran train(const std::string& flags,
            const std::string& model =
                "--tokenizer @/words --family bert --layers 2 --heads 2 "
                "--width 16 --init-std 0.2 --task sentence_embedding") const {
    return ran(
        text("train --threads 1 --output @/run --steps 3 --global-batch-size 4 --lr 1e-3 "
             "--overwrite ",
             model, " ", flags));
  }
  std::vector<double> losses() const {
    std::vector<double> out;
    for (const std::string& line : split(read(folder_ / "run/metrics.jsonl"), '\n')) {
      const auto row = json::parse(line, nullptr, false);
      if (row.is_object() && row.contains("loss")) out.push_back(row["loss"]);
    }
    return out;
  }

  Folder folder_;
};

constexpr const char* kTriples =
    "--data @/triples.tsv --text-column q --text-pair-column a --negative-column b ";

TEST_F(SentenceCommand, AllSamplesOfABatchAreCandidatesOnEveryMesh) {
  std::vector<double> plain;
  for (const char* mesh :
       {"", "--micro-batch-size 2", "--devices 2 --micro-batch-size 2",
        "--devices 4 --tensor-model-parallel-size 2 --zero-stage 3 --micro-batch-size 2",
        "--devices 4 --pipeline-model-parallel-size 2 --micro-batch-size 1"}) {
    const Ran trained = train(text(kTriples, mesh));
    ASSERT_EQ(trained.code, 0) << mesh << trained.err;
    const std::vector<double> found = losses();
    ASSERT_GE(found.size(), 3U);
    if (plain.empty()) plain = found;
    for (std::size_t i = 0; i < plain.size(); ++i)
      EXPECT_NEAR(found.at(i), plain[i], 2e-5 * plain[i]) << mesh;
  }
}

TEST_F(SentenceCommand, AFolderOfSentenceTransformersIsWrittenAndRead) {
  ASSERT_EQ(train("--data @/pairs.tsv --sentence-pooling cls").code, 0);
  const Ran written = ran("export @/run --output @/out");
  ASSERT_EQ(written.code, 0) << written.err;
  const json config = json::parse(read(folder_ / "out/config.json")),
             modules = json::parse(read(folder_ / "out/modules.json")),
             pooling = json::parse(read(folder_ / "out/1_Pooling/config.json"));
  EXPECT_EQ(config["architectures"], json({"BertModel"}));
  ASSERT_EQ(modules.size(), 3U);
  EXPECT_EQ(modules[1]["path"], "1_Pooling");
  EXPECT_TRUE(pooling["pooling_mode_cls_token"]);
  EXPECT_FALSE(pooling["pooling_mode_mean_tokens"]);
  // Texts are cut where predict cuts them: where positions end.
  const json lengths = json::parse(read(folder_ / "out/sentence_bert_config.json"));
  EXPECT_EQ(lengths["max_seq_length"], config["max_position_embeddings"]);
  // Its pooling is that of runs from it.
  const std::string from = "--task sentence_embedding --init-from @/out";
  ASSERT_EQ(train("--data @/pairs.tsv", from).code, 0);
  EXPECT_NE(read(folder_ / "run/config.toml").find("sentence-pooling = \"cls\""),
            std::string::npos);
  // A module that would make other vectors is refused, by those who read vectors.
  const std::string kept = read(folder_ / "out/sentence_bert_config.json");
  std::ofstream(folder_ / "out/sentence_bert_config.json") << R"({"do_lower_case": true})";
  EXPECT_NE(train("--data @/pairs.tsv", from).err.find("do_lower_case"), std::string::npos);
  std::ofstream(folder_ / "out/sentence_bert_config.json") << kept;
  json others = modules;
  others[2]["type"] = "sentence_transformers.models.Dense";
  std::ofstream(folder_ / "out/modules.json") << others.dump();
  const Ran refused = train("--data @/pairs.tsv", from);
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("models.Dense"), std::string::npos) << refused.err;
  const std::string classes = "--task sequence_classification --init-from @/out --valid-data ";
  const Ran told = train("--data @/labels.tsv", classes + "@/labels.tsv");
  ASSERT_EQ(told.code, 0) << told.err;
  // An export of another task leaves nothing of this one.
  ASSERT_EQ(ran("export @/run --output @/out --overwrite").code, 0);
  EXPECT_FALSE(fs::exists(folder_ / "out/1_Pooling"));
  EXPECT_FALSE(fs::exists(folder_ / "out/modules.json"));
}

TEST_F(SentenceCommand, ScoresSayWhetherAnchorsFindTheirOwn) {
  ASSERT_EQ(train("--data @/pairs.tsv").code, 0);
  const Ran scored = ran("evaluate @/run --data @/pairs.tsv --json");
  ASSERT_EQ(scored.code, 0) << scored.err;
  const json scores = json::parse(scored.out);
  for (const char* name : {"recall_at_1", "recall_at_10", "mrr_at_10"})
    EXPECT_TRUE(scores.dump().find(name) != std::string::npos) << name << scored.out;
  const Ran predicted = ran("predict @/run --data @/pairs.tsv --output @/p.tsv");
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_TRUE(read(folder_ / "p.tsv").starts_with("similarity\tplace\n"));
}

struct RefusedSentences {
  const char *flags, *says;
};

TEST_F(SentenceCommand, WhatDoesNotFitIsRefused) {
  folder_.write("gap.tsv", "anchor\tpositive\nwhat is 1\tit is 1\nwhat is 2\t\nwhat is 3\tit\n");
  folder_.write("odd.tsv", "left\tright\na\tb\n");
  const RefusedSentences rows[] = {
      {"--data @/gap.tsv", "line 3"},
      {"--data @/odd.tsv", "anchor and positive"},
      {"--data @/pairs.tsv --label-column positive", "does nothing with task sentence_embedding"},
      {"--data @/pairs.tsv --texts 3", "texts is 3, but rows have 2 texts"},
      {"--data @/pairs.tsv --texts 5", "texts is 5"},
      {"--data @/pairs.tsv --similarity-scale 0", "similarity-scale"},
      {"--data @/pairs.tsv --sentence-pooling max", "sentence-pooling is 'max'"},
      {"--data @/triples.tsv --text-column q --text-pair-column a --negative-column a",
       "negative-column are 'a'"},
  };
  for (const auto& row : rows) {
    const Ran refused = train(row.flags);
    EXPECT_NE(refused.code, 0) << row.flags;
    EXPECT_NE(refused.err.find(row.says), std::string::npos) << row.flags << "\n" << refused.err;
  }
}

}  // namespace
}  // namespace tessera
