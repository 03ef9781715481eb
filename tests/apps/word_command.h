#pragma once
/// Small models of texts of a few words, trained by the command.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/command_test.h"
#include "apps/word_tokenizer.h"

namespace tessera {

/// In a folder that it calls @: words (a tokenizer) and labels.tsv (texts of two classes).
class WordCommand : public testing::Test {
 protected:
  explicit WordCommand(const std::string& task)
      : model_(text("--tokenizer @/words --family bert --layers 2 --heads 2 --width 16 ",
                    "--init-std 0.2 --task ", task)) {
    std::filesystem::create_directory(folder_ / "words");
    folder_.write("words/tokenizer.json", word_tokenizer());
    folder_.write("words/tokenizer_config.json",
                  R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
    folder_.write("labels.tsv",
                  "sentence\tlabel\nit is 1\ta\nit is 2\tb\nit is 3\ta\nit is 4\tb\n");
  }

  Ran ran(const std::string& line) const { return run(words(folder_.expand(line))); }
  /// Three steps, unless `flags` count epochs, from random weights, unless `model` says otherwise.
  Ran train(const std::string& flags, const std::string& model = "") const {
    const bool epochs = flags.find("--epochs") != std::string::npos;
    return ran(text("train --threads 1 --output @/run --global-batch-size 4 --lr 1e-3 --overwrite ",
                    epochs ? "" : "--steps 3 ", model.empty() ? model_ : model, " ", flags));
  }
  std::vector<double> losses() const {
    std::vector<double> out;
    for (const std::string& line : split(read(folder_ / "run/metrics.jsonl"), '\n')) {
      const auto row = nlohmann::json::parse(line, nullptr, false);
      if (row.is_object() && row.contains("loss")) out.push_back(row["loss"]);
    }
    return out;
  }
  /// `runs` are flags of runs with the same losses.
  void expect_equal_losses(const std::vector<std::string>& runs) const {
    std::vector<double> first;
    for (const std::string& flags : runs) {
      SCOPED_TRACE(flags);
      const Ran trained = train(flags);
      ASSERT_EQ(trained.code, 0) << trained.err;
      const std::vector<double> found = losses();
      ASSERT_GE(found.size(), 3U);
      if (first.empty()) first = found;
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_NEAR(found.at(i), first[i], 2e-5 * first[i]);
    }
  }

  Folder folder_;

 private:
  std::string model_;
};

}  // namespace tessera
