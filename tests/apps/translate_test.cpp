/// `tessera sample` with a model that translates: it learns to write words backwards.

#include <iomanip>
#include <random>
#include <set>

#include "apps/command_test.h"
#include "as_nobody.h"

namespace tessera {
namespace {

struct Words {
  std::string pairs, sources, targets;  // those to learn from; others and what they are backwards
};

std::string backwards(const std::string& word) { return {word.rbegin(), word.rend()}; }

Words words_to_turn() {
  std::mt19937_64 random(7);
  std::set<std::string> known;
  Words out;
  while (known.size() < 420) {
    std::string word;
    for (std::uint64_t i = 0, n = 3 + random() % 2; i < n; ++i)
      word += static_cast<char>('a' + random() % 6);
    if (!known.insert(word).second) continue;
    if (known.size() <= 400) {
      out.pairs += word + "\t" + backwards(word) + "\n";
    } else {
      out.sources += word + "\n";
      out.targets += backwards(word) + "\n";
    }
  }
  return out;
}

/// A run that learned from the words in @/pairs.txt.
std::string trained(const Folder& folder, int steps) {
  const Ran ran = run(words(folder.expand(
      text("train --preset transformer-tiny --data @/pairs.txt --output @/run1 --layers 1 "
           "--context 6 --source-context 6 --width 64 --heads 4 --steps ",
           steps,
           " --global-batch-size 64 --micro-batch-size 64 --lr 4e-3 --lr-warmup-steps 20 --dropout "
           "0 --held-out 0 --shared-embedding"))));
  EXPECT_EQ(ran.code, 0) << ran.err;
  return folder.expand("@/run1");
}

/// How many lines of two texts are equal.
int equal_lines(const std::string& a, const std::string& b) {
  const std::vector<std::string> x = split(a, '\n'), y = split(b, '\n');
  EXPECT_EQ(x.size(), y.size());
  int out = 0;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    out += !x[i].empty() && x[i] == y[i];
  return out;
}

TEST(Translate, LearnsToWriteWordsBackwards) {
  const Folder folder;
  const Words all = words_to_turn();
  folder.write("pairs.txt", all.pairs);
  folder.write("sources.txt", all.sources);
  const std::string checkpoint = trained(folder, 200);
  const Ran greedy = run({"sample", checkpoint, "--input", folder / "sources.txt"});
  ASSERT_EQ(greedy.code, 0) << greedy.err;
  EXPECT_GE(equal_lines(greedy.out, all.targets), 18) << "of 20\n" << greedy.out << all.targets;
  const Ran beams = run({"sample", checkpoint, "--input", folder / "sources.txt", "--output",
                         folder / "out.txt", "--beams", "3", "--rows", "3"});
  ASSERT_EQ(beams.code, 0) << beams.err;
  EXPECT_EQ(beams.out, text("wrote 20 texts to '", folder / "out.txt", "'\n"));
  EXPECT_GE(equal_lines(read(folder / "out.txt"), all.targets), 18);
  const Ran stages = run({"sample", checkpoint, "--input", folder / "sources.txt", "--devices", "4",
                          "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size",
                          "2", "--threads", "4"});
  EXPECT_EQ(stages.out, greedy.out) << stages.err;
}

TEST(Translate, RefusesWhatItCannotWriteFrom) {
  const Folder folder;
  folder.write("pairs.txt", words_to_turn().pairs);
  const std::string checkpoint = trained(folder, 2);
  folder.write("text.txt", some_text());
  ASSERT_EQ(run(words(folder.expand("train --preset gpt2-tiny --layers 1 --context 8 --steps 1 "
                                    "--data @/text.txt --output @/lm")))
                .code,
            0);
  folder.write("empty.txt", "");
  folder.write("long.txt", "abc\nabcdef\n");
  folder.write("foreign.txt", "abc\nabz\n");
  folder.write("gap.txt", "abc\n\nabc\n");
  folder.write("good.txt", "abc\ncba");
  struct Row {
    const char* line;
    int code;
    const char* message;
  };
  for (const Row& row : {
           Row{"@/run1", 2,
               "no source given: a model of family transformer needs one; give --prompt TEXT or "
               "--input FILE"},
           {"@/run1 --prompt=", 2, "--prompt is empty; the model writes a text from a source"},
           {"@/run1 --prompt abcdef", 2,
            "--prompt has 7 tokens with the end token, the model's source-context is 6"},
           {"@/run1 --input @/long.txt", 3,
            "line 2 of '@/long.txt' has 7 tokens with the end token, the model's source-context is "
            "6; shorten the text"},
           {"@/run1 --input @/foreign.txt", 3, "line 2 of '@/foreign.txt': "},
           {"@/run1 --input @/gap.txt", 3, "line 2 of '@/gap.txt' is empty"},
           {"@/run1 --input @/empty.txt", 3, "'@/empty.txt' is empty"},
           {"@/run1 --input @/none.txt", 3, "none.txt"},
           {"@/run1 --input @/good.txt --output @/good.txt", 2,
            "output '@/good.txt' is the file that input names, which it would replace"},
           {"@/run1 --input @/good.txt --output @/text.txt", 2,
            "--output '@/text.txt' exists; give another file, or --overwrite to replace it"},
           {"@/run1 --input @/pairs.txt", 3,
            "line 1 of '@/pairs.txt' has a tab or a new line, which separate texts"},
           {"@/run1 --input @/good.txt --prompt a", 2, "--prompt and --input both give prompts"},
           {"@/run1 --prompt abc --rows 2", 2, "--rows needs several texts"},
           {"@/run1 --input - --prompt a", 2,
            "--input - is not a file; save what standard input gives to a file first"},
           {"@/run1 --input @/good.txt --output -", 2,
            "--output - is not a file; without --output texts are written to standard output"},
           {"@/run1 --input @/good.txt --output @/none/x", 5,
            "cannot write '@/none/x': could not create a temporary file beside it"},
           {"@/run1 --prompt abc --seed -1", 2,
            "error: --seed is -1; it must be a whole number of at least 0\n"},
           {"@/run1 --prompt abc --temperature nan", 2,
            "error: --temperature is nan; it must be a finite number, like 0.1\n"},
           {"@/run1 --input @/good.txt --rows 0", 2, "--rows is 0; it must be from 1 to 10000"},
           {"@/lm --input @/good.txt", 2, "--input is for models that write from a source"},
       }) {
    SCOPED_TRACE(row.line);
    const Ran ran = run(words("sample " + folder.expand(row.line)));
    EXPECT_EQ(ran.code, row.code);
    EXPECT_NE(ran.err.find(folder.expand(row.message)), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(read(folder / "good.txt"), "abc\ncba") << "sources are never written";
  const Ran one = run({"sample", checkpoint, "--prompt", "abc", "--tokens", "2"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_LE(one.out.size(), 3u) << "two letters and a new line, without the source";
  const Ran both = run({"sample", checkpoint, "--input", folder / "good.txt"});
  EXPECT_EQ(split(both.out, '\n').size(), 3u)
      << both.out << "two lines, though the last ends in none";
  folder.write("windows.txt",
               "\xEF\xBB\xBF"
               "abc\r\ncba\r\n");
  const Ran windows = run({"sample", checkpoint, "--input", folder / "windows.txt"});
  EXPECT_EQ(windows.out, both.out) << "read as training data are; " << windows.err;
  for (const auto& entry : std::filesystem::directory_iterator(folder / ""))
    EXPECT_EQ(entry.path().string().find(".partial-"), std::string::npos) << entry.path();
  const Ran penalty =
      run({"sample", folder / "lm", "--tokens", "2", "--beams", "2", "--length-penalty", "1"});
  EXPECT_EQ(penalty.code, 0);
  EXPECT_NE(penalty.err.find("notice: --length-penalty 1 has no effect"), std::string::npos)
      << penalty.err;
}

TEST(Translate, AFileThatMayNotBeWrittenIsNotReplaced) {
  const Folder folder;
  folder.write("pairs.txt", words_to_turn().pairs);
  const std::string checkpoint = trained(folder, 2);
  folder.write("in.txt", "abc\n");
  folder.write("out.txt", "old");
  namespace fs = std::filesystem;
  fs::permissions(folder / "out.txt", fs::perms(0444));
  const AsNobody nobody(folder / "");
  const Ran ran = run({"sample", checkpoint, "--input", folder / "in.txt", "--output",
                       folder / "out.txt", "--overwrite"});
  EXPECT_EQ(ran.code, 5);
  EXPECT_EQ(ran.err, text("error: --output '", folder / "out.txt",
                          "' is not writable: Permission denied; change its permissions, or "
                          "give another file\n"));
  EXPECT_EQ(read(folder / "out.txt"), "old");
}

/// What cannot be known of a value that was refused is not said.
TEST(Translate, RefusedPartsAreToldOnce) {
  const Folder folder;
  folder.write("pairs.txt", "a\tb\nc\td\ne\tf\n");
  folder.write("empty.txt", "");
  const std::string train =
      "train --family transformer --layers 1 --width 16 --heads 2 --context 16 --threads 1 "
      "--data @/pairs.txt --output @/run --steps 1 ";
  EXPECT_EQ(run(words(folder.expand(train + "--held-out nan"))).err,
            "error: --held-out is nan; it must be a finite number, like 0.1\n");
  EXPECT_EQ(run(words(folder.expand(train + "--valid-data @/empty.txt"))).err,
            folder.expand("error: text file '@/empty.txt' is empty; give a file with text\n"));
  const Ran none = run(words(folder.expand(train)));
  EXPECT_EQ(none.code, 3);
  EXPECT_NE(
      none.err.find("has no pair; use a longer text, hold out more of it\n    held-out is "
                    "0.1; give 0 to hold nothing out, or valid-data to validate on another text\n"),
      std::string::npos)
      << none.err;
  EXPECT_EQ(run(words(folder.expand(train + "--held-out 0"))).code, 0);
}

TEST(Translate, HelpListsTheFlagsThatSampleHas) {
  const std::string help = run({"sample", "--help"}).out;
  for (const char* flag : {"--input", "--output", "--rows", "--prompt", "--beams", "--threads"})
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  for (const char* flag :
       {"--config", "--data", "--layers", "--zero-stage", "--micro-batch-size", "context parallel"})
    EXPECT_EQ(help.find(flag), std::string::npos) << flag;
}

/// The number behind "name": in the last line of a run's metrics that has it.
std::string last_metric(const std::string& run, const std::string& name) {
  const std::string lines = read(run + "/metrics.jsonl"), key = "\"" + name + "\":";
  const std::size_t at = lines.rfind(key);
  if (at == std::string::npos) return "none";
  const std::size_t begin = at + key.size();
  return lines.substr(begin, lines.find_first_of(",}", begin) - begin);
}

/// The BLEU of a validation is that of the texts that `sample` writes with the same weights, and
/// the same on every mesh. Eighteen texts are two batches of rows.
TEST(Translate, ValidationsScoreTranslations) {
  const Folder folder;
  const auto pair = [](int i) {
    return std::pair(text("le chat ", i % 7, " dort"), text("the cat ", i % 7, " sleeps here ."));
  };
  std::string pairs, valid, sources, references;
  for (int i = 0; i < 60; ++i) pairs += text(pair(i).first, "\t", pair(i).second, "\n");
  for (int i = 0; i < 20; ++i) {
    const auto [source, target] = pair(i * 3 + 1);
    valid += text(source, "\t", target, i % 2 == 0 ? "" : " now", "\n");
    if (i >= 18) continue;
    sources += source + "\n";
    references += text(target, i % 2 == 0 ? "" : " now", "\n");
  }
  folder.write("pairs.txt", pairs);
  folder.write("valid.txt", valid);
  folder.write("sources.txt", sources);
  folder.write("references.txt", references);
  const std::string train =
      "train --preset transformer-tiny --layers 1 --width 32 --heads 2 --context 24 --data "
      "@/pairs.txt --valid-data @/valid.txt --vocabulary bpe --vocab-size 300 --steps 100 --lr "
      "3e-3 "
      "--eval-every 100 --eval-texts 18 --output @/";
  const Ran one = run(words(folder.expand(train + "one")));
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_NE(one.out.find("  bleu "), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("le chat 1 dort\n    -> "), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("\n    reference: the cat 1 sleeps here .\n"), std::string::npos)
      << one.out;
  const std::string bleu = last_metric(folder / "one", "bleu");
  EXPECT_GT(std::stod(bleu), 20) << one.out;  // the frame of the sentences is learned
  EXPECT_LT(std::stod(bleu), 99);             // of "now" nothing can be known
  const Ran written =
      run(words(folder.expand("sample @/one --input @/sources.txt --output @/written.txt")));
  ASSERT_EQ(written.code, 0) << written.err;
  const Ran score =
      run(words(folder.expand("score --hypotheses @/written.txt --references @/references.txt")));
  std::ostringstream expected;
  expected << "BLEU = " << std::fixed << std::setprecision(2) << std::stod(bleu) << " ";
  EXPECT_EQ(score.out.substr(0, expected.str().size()), expected.str()) << score.out << score.err;
  // What is scored is not a matter of when a run was interrupted.
  ASSERT_EQ(run(words(folder.expand(train + "two --exit-interval 60"))).code, 0);
  ASSERT_EQ(run(words(folder.expand("train --config @/two/config.toml --resume auto"))).code, 0);
  EXPECT_EQ(last_metric(folder / "two", "bleu"), bleu);
  for (const char* mesh : {"--tensor-model-parallel-size 2",
                           "--pipeline-model-parallel-size 2 --micro-batch-size 2"}) {
    SCOPED_TRACE(mesh);
    const Ran many = run(words(folder.expand(text(train, "many --devices 2 --threads 1 ", mesh))));
    ASSERT_EQ(many.code, 0) << many.err;
    EXPECT_EQ(last_metric(folder / "many", "bleu"), bleu);
    std::filesystem::remove_all(folder / "many");
  }
}

TEST(Translate, RefusesToScoreNothing) {
  const Folder folder;
  folder.write("text.txt", some_text());
  struct Row {
    const char *flags, *message;
  };
  for (const Row& row :
       {Row{"--preset gpt2-tiny --eval-texts 2",
            "eval-texts 2 does nothing with family gpt2, which writes no text from a source; give "
            "eval-texts 0"},
        {"--preset transformer-tiny --eval-texts 2 --held-out 0",
         "eval-texts 2 does nothing without a validation; give eval-every or eval-at-end, with "
         "held-out or valid-data, or give eval-texts 0"}}) {
    const Ran ran = run(words(folder.expand(text("plan --vocab-size 40 ", row.flags))));
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err, text("error: ", row.message, "\n"));
  }
}

}  // namespace
}  // namespace tessera
