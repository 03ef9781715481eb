#include "tessera/data/bleu.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/data/wmt.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

nlohmann::json golden_bleu() {
  return nlohmann::json::parse(read_file(repo_file("tests/golden/bleu.json")));
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

/// sacreBLEU 2.6.0 on newstest2014, made into lines by prepare_wmt: French that is taken for
/// English, and English without the last word of each line (tools/golden/bleu.py FILE FILE).
TEST(Bleu, OfARealSet) {
  const std::string data = test_data("wmt14-fren");
  if (data.empty()) GTEST_SKIP() << no_test_data("wmt14-fren");
  const TestFolder folder;
  prepare_wmt({data, folder.path()});
  std::vector<std::string> french, english, cut;
  for (const std::string& line : split(read_file(folder / "wmt14.fr_en.txt"), '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> pair = split(line, '\t');
    french.push_back(pair[0]);
    english.push_back(pair[1]);
    const std::size_t last = pair[1].rfind(' ');
    cut.push_back(last == std::string::npos ? "" : pair[1].substr(0, last));
  }
  const Bleu copied = corpus_bleu(french, english), shorter = corpus_bleu(cut, english);
  EXPECT_NEAR(copied.score, 2.422056980605613, 1e-10);
  EXPECT_EQ(to_text(copied),
            "BLEU = 2.42 16.6/3.4/1.3/0.5 (BP = 1.000 ratio = 1.093 hyp_len = "
            "77306 ref_len = 70708)");
  EXPECT_NEAR(shorter.score, 91.02281995872836, 1e-10);
  EXPECT_EQ(to_text(shorter),
            "BLEU = 91.02 100.0/100.0/100.0/100.0 (BP = 0.910 ratio = 0.914 "
            "hyp_len = 64629 ref_len = 70708)");
}

TEST(Bleu, Errors) {
  const std::vector<std::string> one = {"a"}, two = {"a", "b"};
  EXPECT_EQ(message_of([&] { corpus_bleu(one, two); }),
            "there are 1 hypotheses and 2 references; give one reference for each, in their order");
  EXPECT_EQ(message_of([&] { corpus_bleu({}, {}); }),
            "there is no hypothesis to score; give at least one");
}

}  // namespace
}  // namespace tessera
