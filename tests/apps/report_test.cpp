/// `tessera report` on runs of every kind.

#include <gtest/gtest.h>

#include <algorithm>

#include "apps/command_test.h"
#include "tessera/train/metrics.h"

namespace tessera {
namespace {

class ReportCommand : public testing::Test {
 protected:
  ReportCommand() { folder_.write("text.txt", some_text()); }

  void train(const std::string& flags) {
    const Ran ran = run(words(folder_.expand(
        text("train --preset gpt2-tiny --layers 1 --data @/text.txt --steps 6 --eval-every 3 ",
             flags))));
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  /// The page about these runs; empty where the command failed.
  std::string page_of(const std::string& runs) {
    const Ran ran = run(words(folder_.expand(text("report ", runs, " --output @/page.html"))));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return read(folder_ / "page.html");
  }
  static bool has(const std::string& page, const std::string& what) {
    return page.find(what) != std::string::npos;
  }

  Folder folder_;
};

TEST_F(ReportCommand, ShowsAllThatARunLeft) {
  train(
      "--output @/run --profile @/trace.json --profile-steps 1 --lr 0.002 --save-every 4 "
      "--test-data @/text.txt");
  const std::string page = page_of("@/run");
  for (const char* what :
       {"<title>tessera report: ", "<td>steps</td><td>6 of 6</td>", "Loss against steps",
        "Learning rate against steps", "Gradient norm, before clipping against steps",
        "Tokens per second against steps", "memory of rank 0", "optimizer state",
        "<td>lr</td><td>0.002</td><td>0.001</td>", "Slowest kernels of ", "<td>step-00000004</td>",
        "<td>step-00000006</td>", "validation (dots)", "<td>test loss</td>",
        "<td>test perplexity</td>"})
    EXPECT_TRUE(has(page, what)) << what;
  std::string rest = page;
  const std::string name = "http://www.w3.org/2000/svg";  // of the format; nobody opens it
  for (std::size_t at = 0; (at = rest.find(name)) != std::string::npos;)
    rest.erase(at, name.size());
  for (const char* outside : {"http", "src=", "href", "<script", "<link", "@import", "url("})
    EXPECT_FALSE(has(rest, outside)) << outside;
  EXPECT_EQ(std::ranges::count(page, '<'), std::ranges::count(page, '>')) << "nothing unescaped";
}

TEST_F(ReportCommand, ShowsRunsBesideEachOther) {
  train("--output @/a --lr 0.002");
  train("--output @/b --fp16 --devices 2");
  const std::string page = page_of("@/a @/b");
  const std::string a = folder_ / "a", b = folder_ / "b";
  EXPECT_TRUE(has(page, text("<th>field</th><th>", a, "</th><th>", b, "</th><th>default</th>")));
  EXPECT_TRUE(has(page, "<td>lr</td><td>0.002</td><td>0.001</td>"));
  EXPECT_TRUE(has(page, "<td>fp16</td><td>false</td><td>true</td><td>false</td>"));
  EXPECT_TRUE(has(page, "<td>mesh</td><td></td><td>dp=2</td>"));
  EXPECT_TRUE(has(page, "Loss scale against steps"));
  EXPECT_TRUE(has(page, text(a, ": training "))) << "both are in one drawing";
}

TEST_F(ReportCommand, ShowsWhatThereIsOfARunThatWasKilled) {
  train("--output @/run");
  std::filesystem::remove(folder_ / "run/summary.json");
  std::filesystem::remove_all(folder_ / "run/checkpoints");
  std::ofstream(folder_ / "run/metrics.jsonl", std::ios::app) << R"({"kind":"tr)";
  const std::string page = page_of("@/run");
  EXPECT_TRUE(has(page, "there is no summary.json"));
  EXPECT_TRUE(has(page, "there is no checkpoint"));
  EXPECT_TRUE(has(page, "Loss against steps"));
  folder_.write("run/summary.json", "{");
  EXPECT_TRUE(has(page_of("@/run"), "is damaged: it is not a JSON object"));
}

/// The loss of a step is not the mean of some: what a drawing says is the number of the table, that
/// of the picture and that of summary.json, which leaves out steps that were skipped.
TEST_F(ReportCommand, TheLastLossIsTheSameEverywhere) {
  std::filesystem::create_directories(folder_ / "run");
  std::string lines;
  for (int step = 1; step <= 2000; ++step)
    lines += text(R"({"kind":"train","step":)", step, R"(,"loss":)", step % 2 == 0 ? 1.89164 : 1.7,
                  "}\n");
  lines += R"({"kind":"valid","step":2000,"loss":1.75})"
           "\n"
           R"({"kind":"train","step":2001,"loss":9.5,"skipped":true})"
           "\n";
  folder_.write("run/metrics.jsonl", lines);
  EXPECT_EQ(keep_metrics(lines, 2001).train_loss, 1.89164);
  const std::string page = page_of("@/run"), name = folder_ / "run",
                    drawn =
                        ": training 1.8916 in the last step, validation (dots) 1.75 at the end<";
  EXPECT_TRUE(has(page, "<td>training loss in the last step</td><td>1.8916</td>")) << page;
  EXPECT_TRUE(has(page, "<td>validation loss at the end</td><td>1.75</td>"));
  EXPECT_TRUE(has(page, name + drawn));
  ASSERT_EQ(run(words(folder_.expand("chart @/run --output @/losses.svg"))).code, 0);
  EXPECT_TRUE(has(read(folder_ / "losses.svg"), name + drawn));
}

/// Above 100 % it was compared with too low a rate: null, and in runs of before a number.
TEST_F(ReportCommand, ShowsNoUtilizationAbove100Percent) {
  train("--output @/run");
  for (const auto& [mfu, shown] :
       {std::pair{"0.5", "50.0 %"}, {"1", "100.0 %"}, {"3.17", "-"}, {"null", "-"}}) {
    folder_.write("run/summary.json", text("{\"mfu\": ", mfu, "}"));
    EXPECT_TRUE(has(page_of("@/run"), text("<td>MFU</td><td>", shown, "</td>"))) << mfu;
  }
}

/// Checkpoints called as Megatron-LM calls them lie in the folder of the run itself.
TEST_F(ReportCommand, FindsCheckpointsHoweverTheyAreCalled) {
  train("--output @/run --checkpoint-names iter --keep-best");
  const std::string page = page_of("@/run");
  EXPECT_FALSE(has(page, "there is no checkpoint"));
  EXPECT_TRUE(has(page, "<td>iter_0000006</td>"));
  EXPECT_TRUE(has(page, "<td>best</td>"));
}

TEST_F(ReportCommand, SaysOfNoRunWhatItDoesNotKnow) {
  train("--output @/a --lr 0.002");
  train("--output @/b --lr 0.003");
  std::filesystem::remove(folder_ / "b/config.toml");
  const std::string page = page_of("@/a @/b");
  EXPECT_TRUE(has(page, "there is no config.toml"));
  EXPECT_TRUE(has(page, "<td>lr</td><td>0.002</td><td>?</td><td>0.001</td>"));
}

TEST_F(ReportCommand, RefusesWhatIsNoRun) {
  const auto error = [&](const std::string& rest) {
    const Ran ran = run(words(folder_.expand(text("report ", rest))));
    EXPECT_EQ(ran.code, 2);
    return ran.err;
  };
  EXPECT_TRUE(has(error(""), "report takes the folders of one or more runs; give one"));
  EXPECT_TRUE(has(error("@"), "has no metrics.jsonl"));
  EXPECT_TRUE(has(error("@/x @/x"), "is given twice"));
  EXPECT_TRUE(has(error("@ --output page.pdf"), "it must end in .html"));
}

}  // namespace
}  // namespace tessera
