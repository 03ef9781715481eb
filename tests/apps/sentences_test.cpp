/// Vectors of texts by the command: from columns of tables to a folder of sentence-transformers.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/word_command.h"
#include "repo_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SentenceCommand : public WordCommand {
 protected:
  SentenceCommand() : WordCommand("sentence_embedding") {
    std::string pairs = "anchor\tpositive\n", triples = "q\ta\tb\n";
    for (int i = 0; i < 40; ++i) {
      pairs += text("what is ", i % 13, "\tit is ", i % 13, " and ", i, "\n");
      triples += text("what is ", i, "\tit is ", i, "\tit is ", i + 7, "\n");
    }
    folder_.write("pairs.tsv", pairs);
    folder_.write("triples.tsv", triples);
  }
};

constexpr const char* kTriples =
    "--data @/triples.tsv --text-column q --text-pair-column a --negative-column b ";

TEST_F(SentenceCommand, AllSamplesOfABatchAreCandidatesOnEveryMesh) {
  std::vector<std::string> runs;
  for (const char* mesh :
       {"", "--micro-batch-size 2", "--devices 2 --micro-batch-size 2",
        "--devices 4 --tensor-model-parallel-size 2 --zero-stage 3 --micro-batch-size 2",
        "--devices 4 --pipeline-model-parallel-size 2 --micro-batch-size 1"})
    runs.push_back(text(kTriples, mesh));
  expect_equal_losses(runs);
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
