#include <gtest/gtest.h>

#include <filesystem>

#include "apps/command_test.h"
#include "tessera/base/utf8.h"

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
  folder.write("none", "");
  folder.write("mark", "\xEF\xBB\xBF");
  folder.write("latin", "caf\xE9\n");
  folder.write("rows.tsv", "q\tlabel\tprediction\na\t1\t1\na\tyes\t0\n");
  std::filesystem::create_directory(folder / "folder");
  folder.write("folder/one", "a\n");
  struct Case {
    const char* arguments;
    int code;
    const char* message;
  };
  const Case cases[] = {
      {"score --hypotheses @/one --references @/two", 3,
       "'@/one' has 1 line and '@/two' has 2 lines; give one reference per hypothesis, in the same "
       "order"},
      {"score --hypotheses @/folder --references @/one", 3,
       "'@/folder' is a folder where a file is expected; give a file in it"},
      {"score --hypotheses @/one --references @/none", 3,
       "'@/none' is empty; give a file with one text per line"},
      {"score --hypotheses @/mark --references @/one", 3,
       "'@/mark' is empty; give a file with one text per line"},
      {"score --hypotheses @/latin --references @/one", 3,
       "text file '@/latin', line 1, byte offset 3: byte 0xe9 is not UTF-8; convert the file to "
       "UTF-8, or leave it out"},
      {"score @/one", 2,
       "3 problems, nothing was started:\n  hypotheses is missing; give a file with one text per "
       "line, like --hypotheses FILE\n  references is missing; give a file with one text per line, "
       "like --references FILE\n  '@/one' belongs to no flag; give files with --hypotheses and "
       "--references, or --predictions"},
      {"score --metric bleus --predictions @/one", 2,
       "metric is 'bleus'; it can be bleu, wer, accuracy, f1, matthews, pearson, spearmanr, cola, "
       "sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli, multirc, recall-at-K"},
      {"score --metric cola --references @/one", 2,
       "2 problems, nothing was started:\n  predictions is missing; give a file with predictions "
       "and labels, like --predictions FILE\n  --references is not read for metric cola; leave it "
       "out, or give --metric with one that it is for"},
      {"score --metric multirc --predictions @/rows.tsv", 2,
       "metric multirc is of groups of rows; give --group-column with what the rows of a group "
       "share, as the number of a question"},
      {"score --metric stsb --predictions @/rows.tsv", 3,
       "'@/rows.tsv' line 3: 'yes' in column 'label' is no number; correct it, or name another "
       "column"},
      {"score --metric qqp --predictions @/rows.tsv", 3,
       "'@/rows.tsv' line 3: 'yes' in column 'label' must be 0 or 1, or not_duplicate or "
       "duplicate; "
       "correct it, or name another column"},
      {"score --metric recall-at-2 --predictions @/rows.tsv --group-column q --score-column "
       "prediction",
       3,
       "'@/rows.tsv' line 3: 'yes' in column 'label' must be 1, for right, or 0; correct it, or "
       "name another column"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments);
    const Ran ran = run(words(folder.expand(c.arguments)));
    EXPECT_EQ(ran.code, c.code);
    EXPECT_EQ(ran.err, "error: " + folder.expand(c.message) + "\n");
  }
}

/// By hand: of two questions, four answers; the first question has a wrong one.
TEST(Score, OfPredictions) {
  const Folder folder;
  folder.write("p.tsv",
               "q\tlabel\tprediction\tp(0)\tp(1)\n"
               "a\t1\t1\t0.1\t0.9\na\t0\t1\t0.4\t0.6\n"
               "b\t1\t1\t0.3\t0.7\nb\t0\t0\t0.8\t0.2\n");
  folder.write("n.tsv", "label\tprediction\n1\t1.5\n2\t1.75\n4.5\t3\n");
  folder.write("names.csv", "gold,prediction\nno,no\nyes,no\n");
  // The same rows by MRPC's names, of which the alphabet has the wrong one last.
  folder.write("mrpc.tsv",
               "label\tprediction\nequivalent\tequivalent\nnot_equivalent\tequivalent\n"
               "equivalent\tequivalent\nnot_equivalent\tnot_equivalent\n");
  folder.write("ours", "a x c\n");
  folder.write("theirs", "a b c d\n");
  const auto said = [&](const std::string& arguments) {
    const Ran ran = run(words(folder.expand("score --metric " + arguments)));
    EXPECT_EQ(ran.err, "") << arguments;
    return ran.out;
  };
  EXPECT_EQ(said("mrpc --predictions @/p.tsv"), "accuracy  0.75\nf1  0.8\n");
  EXPECT_EQ(said("mrpc --predictions @/mrpc.tsv"), "accuracy  0.75\nf1  0.8\n");
  EXPECT_EQ(said("cola --predictions @/p.tsv"), "matthews  0.577350269\n");
  EXPECT_EQ(said("multirc --predictions @/p.tsv --group-column q"), "f1  0.8\nexact_match  0.5\n");
  EXPECT_EQ(said("recall-at-1 --predictions @/p.tsv --group-column q"), "recall-at-1  1\n");
  EXPECT_EQ(said("stsb --predictions @/n.tsv"), "pearson  0.992215357\nspearmanr  1\n");
  EXPECT_EQ(said("f1 --predictions @/names.csv --label-column gold"), "f1  0\n");
  EXPECT_EQ(said("wer --hypotheses @/ours --references @/theirs"),
            "WER = 0.5 (1 changed, 1 left out, 0 added, of 4 words)\n");
}

/// Texts without a word, as a model that has learned nothing writes them, are scored.
TEST(Score, EmptyLinesAreTexts) {
  const Folder folder;
  folder.write("nothing", "\n\n");
  folder.write("two", "a b\nc\n");
  const Ran ran = run(words(folder.expand("score --hypotheses @/nothing --references @/two")));
  EXPECT_EQ(ran.out,
            "BLEU = 0.00 0.0/0.0/0.0/0.0 (BP = 0.000 ratio = 0.000 hyp_len = 0 ref_len = 3)\n")
      << ran.err;
}

/// A model of bytes spells any bytes, and one of learned tokens half a character as well: what is
/// written to a file is a text nevertheless, which `score` reads.
TEST(Score, WhatAModelWritesIsUtf8) {
  const Folder folder;
  std::string pairs, sources;
  for (int i = 0; i < 40; ++i) {
    pairs += text("\u00e9t\u00e9 ", i % 7, "\tsummer ", i % 7, "\n");
    if (i < 16) sources += text("\u00e9t\u00e9 ", i % 7, "\n");
  }
  folder.write("pairs.txt", pairs);
  folder.write("sources.txt", sources);
  const Ran trained = run(words(folder.expand(
      "train --preset transformer-tiny --layers 1 --width 16 --heads 2 --context 16 "
      "--vocabulary bytes --data @/pairs.txt --output @/run --global-batch-size 4 --steps 1")));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string sample =
      "sample @/run --input @/sources.txt --tokens 12 --temperature 9 --seed 3";
  const Ran screen = run(words(folder.expand(sample)));
  ASSERT_EQ(screen.code, 0) << screen.err;
  EXPECT_NE(screen.out.find("\uFFFD"), std::string::npos) << "no row of this test is broken UTF-8";
  EXPECT_EQ(find_invalid_utf8(screen.out), std::string::npos) << screen.out;
  ASSERT_EQ(run(words(folder.expand(sample + " --output @/written.txt"))).code, 0);
  EXPECT_EQ(read(folder / "written.txt"), screen.out);
  const Ran score =
      run(words(folder.expand("score --hypotheses @/written.txt --references @/sources.txt")));
  EXPECT_EQ(score.code, 0) << score.err;
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
  EXPECT_EQ(unsized.err,
            "error: vocab-size 0 has no room for the base of vocabulary bpe, 256 bytes and "
            "3 special tokens of family transformer; give at least 259, like 8000\n");
  const Ran small = run(words(folder.expand(train + "--steps 2 --vocab-size 258")));
  EXPECT_EQ(small.code, 2);
  EXPECT_EQ(small.err.find("error: vocab-size 258 has no room for"), 0u) << small.err;
  const Ran first = run(words(folder.expand(train + "--steps 2 --vocab-size 265")));
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out.find("the vocabulary has"), std::string::npos) << first.out;
  const Ran more =
      run(words(folder.expand("train --config @/run/config.toml --resume auto --steps 4")));
  EXPECT_EQ(more.code, 0) << more.err;
  // The preset leaves the number of tokens open, the checkpoint has it.
  const std::string preset =
      "train --preset transformer-tiny --layers 1 --width 16 --heads 2 --data @/pairs.txt "
      "--global-batch-size 4 --output @/";
  const Ran by_preset = run(words(folder.expand(preset + "run --resume auto --steps 5")));
  EXPECT_EQ(by_preset.code, 0) << by_preset.err;
  const Ran begun = run(words(folder.expand(preset + "new --init-from @/run --steps 1")));
  EXPECT_EQ(begun.code, 0) << begun.err;
  const Ran again =
      run(words(folder.expand("train --config @/new/config.toml --resume auto --steps 2")));
  EXPECT_EQ(again.code, 0) << again.err;
  std::filesystem::remove_all(folder / "new/checkpoints");
  const Ran afresh = run(words(folder.expand(
      "train --config @/new/config.toml --init-from @/run --steps 1 --output @/afresh")));
  EXPECT_EQ(afresh.code, 0) << afresh.err;
  const Ran few =
      run(words(folder.expand(preset + "few --init-from @/run --steps 1 --vocab-size 260")));
  EXPECT_NE(few.code, 0);
  EXPECT_NE(few.err.find("vocab-size 260 is less than the 262 tokens of the data and the 3 special "
                         "tokens of family transformer; give 0 or at least 265"),
            std::string::npos)
      << few.err;
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
  EXPECT_NE(
      (much.out + much.err)
          .find(
              "tokens instead of 5000, because no other pair of tokens appears twice in the text"),
      std::string::npos)
      << much.out << much.err;
}

}  // namespace
}  // namespace tessera
