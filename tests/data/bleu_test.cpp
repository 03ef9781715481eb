#include "tessera/data/bleu.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

const nlohmann::json& golden_bleu() {
  static const auto out = nlohmann::json::parse(read_file(repo_file("tests/golden/bleu.json")));
  return out;
}

TEST(Bleu, WordsEqualSacreBleus) {
  for (const auto& line : golden_bleu()["lines"]) {
    const std::string in = line["line"];
    EXPECT_EQ(bleu_words(in), line["words"].get<std::vector<std::string>>()) << in;
  }
}

TEST(Bleu, ScoresEqualSacreBleus) {
  for (const auto& c : golden_bleu()["corpora"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const Bleu bleu = corpus_bleu(c["hypotheses"].get<std::vector<std::string>>(),
                                  c["references"].get<std::vector<std::string>>());
    EXPECT_NEAR(bleu.score, c["score"].get<double>(), 1e-10);  // logarithms of other libraries
    EXPECT_NEAR(bleu.brevity_penalty, c["bp"].get<double>(), 1e-14);
    for (std::size_t n = 0; n < Bleu::kOrders; ++n)
      EXPECT_NEAR(bleu.precisions[n], c["precisions"][n].get<double>(), 1e-12);
    EXPECT_EQ(bleu.words, c["sys_len"]);
    EXPECT_EQ(bleu.reference_words, c["ref_len"]);
    EXPECT_EQ(bleu.matches, c["counts"].get<decltype(bleu.matches)>());
    EXPECT_EQ(bleu.runs, c["totals"].get<decltype(bleu.runs)>());
    EXPECT_EQ(to_text(bleu), c["line"]);
  }
}

TEST(Bleu, Errors) {
  const std::vector<std::string> one = {"a"}, two = {"a", "b"};
  EXPECT_EQ(message_of([&] { corpus_bleu(one, two); }),
            "there are 1 hypotheses but 2 references; give one reference per hypothesis, in the "
            "same order");
  EXPECT_EQ(message_of([&] { corpus_bleu({}, {}); }),
            "there is no hypothesis to score; give at least one");
}

}  // namespace
}  // namespace tessera
