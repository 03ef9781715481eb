#include <gtest/gtest.h>

#include "apps/command_test.h"

namespace tessera {
namespace {

TEST(Score, PrintsSacreBleusLine) {
  const Folder folder;
  folder.write("ours", "The cat lay on a mat .\n\n");
  folder.write("theirs", "The cat sat on the mat, and the dog lay beside it.\r\nYes.\r\n");
  const Ran ran = run(words(folder.expand("score --hypotheses @/ours --references @/theirs")));
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out.substr(0, 7), "BLEU = ");
  EXPECT_NE(ran.out.find("hyp_len = 7 ref_len = 16)\n"), std::string::npos) << ran.out;
}

TEST(Score, Errors) {
  const Folder folder;
  folder.write("one", "a\n");
  folder.write("two", "a\nb");
  struct Case {
    const char* arguments;
    int code;
    const char* message;
  };
  const Case cases[] = {
      {"score --hypotheses @/one --references @/two", 3,
       "'@/one' has 1 line and '@/two' has 2 lines; give one reference for each hypothesis, in "
       "their order"},
      {"score @/one", 2,
       "3 problems, nothing was started:\n  hypotheses is missing; give a file with a text in each "
       "line, like --hypotheses FILE\n  references is missing; give a file with a text in each "
       "line, like --references FILE\n  '@/one' belongs to no flag; give files by --hypotheses and "
       "--references"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments);
    const Ran ran = run(words(folder.expand(c.arguments)));
    EXPECT_EQ(ran.code, c.code);
    EXPECT_EQ(ran.err, "error: " + folder.expand(c.message) + "\n");
  }
}

/// A model of learned tokens: trained, gone on with, and asked for a translation of any text.
TEST(Bpe, OfARun) {
  const Folder folder;
  std::string pairs;
  for (int i = 0; i < 60; ++i)
    pairs += text("le chat ", i % 7, " dort\tthe cat ", i % 7, " sleeps\n");
  folder.write("pairs.txt", pairs);
  const std::string train =
      "train --preset transformer-tiny --layers 1 --width 16 --heads 2 --vocabulary bpe --data "
      "@/pairs.txt --output @/run --global-batch-size 4 ";
  const Ran unsized = run(words(folder.expand(train + "--steps 2")));
  EXPECT_EQ(unsized.code, 2);
  EXPECT_EQ(
      unsized.err,
      "error: vocab-size 0 has no room for what vocabulary bpe begins with, the 256 bytes and "
      "3 special tokens of family transformer; give at least 259: how many tokens there are "
      "to be, like 8000\n");
  const Ran small = run(words(folder.expand(train + "--steps 2 --vocab-size 258")));
  EXPECT_EQ(small.code, 2);
  EXPECT_EQ(small.err.find("error: vocab-size 258 has no room for"), 0u) << small.err;
  const Ran first = run(words(folder.expand(train + "--steps 2 --vocab-size 265")));
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out.find("the vocabulary has"), std::string::npos) << first.out;
  const Ran more =
      run(words(folder.expand("train --config @/run/config.toml --resume auto --steps 4")));
  EXPECT_EQ(more.code, 0) << more.err;
  const Ran other = run(words(
      folder.expand("train --config @/run/config.toml --resume auto --steps 6 --vocab-size 266")));
  EXPECT_EQ(other.code, 4) << other.err;
  const Ran written =
      run({"sample", folder / "run", "--prompt", "\u4e00 unknown \u00fc", "--tokens", "3"});
  EXPECT_EQ(written.code, 0) << written.err;
  const Ran much = run(words(folder.expand(
      "train --preset gpt2-tiny --layers 1 --vocabulary bpe --vocab-size 5000 --data @/pairs.txt "
      "--output @/lm --steps 1")));
  EXPECT_EQ(much.code, 0) << much.err;
  EXPECT_NE((much.out + much.err)
                .find("tokens and not 5000, because no more pairs of tokens are "
                      "twice in the text"),
            std::string::npos)
      << much.out << much.err;
}

}  // namespace
}  // namespace tessera
