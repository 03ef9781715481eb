#include "tessera/launch/launcher_words.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

const std::string kRule(74, '-');
const std::string kDied = kRule +
                          "\nPrimary job  terminated normally, but 1 process returned\na non-zero "
                          "exit code. Per user-direction, the job has been aborted.\n" +
                          kRule + "\n" + kRule +
                          "\nmpirun noticed that process rank 1 with PID 0 on node alpha exited on "
                          "signal 9 (Killed).\n" +
                          kRule + "\n";

TEST(LauncherWords, OfRanksArePassedOnAndItsOwnAreKept) {
  struct Case {
    const char* name;
    std::string bytes, passed, own;
    bool error;
  };
  const Case cases[] = {
      {"lines of ranks", "notice: a\nb\n\n", "notice: a\nb\n\n", "", false},
      {"an error of a rank", "error: no room\n    rank 1 of 2\n",
       "error: no room\n    rank 1 of 2\n", "", true},
      {"errors of two ranks", "error: a\n    at b\nerror: c\n    at d\nnotice: e\n  f\n",
       "error: a\n    at b\nnotice: e\n  f\n", "", true},
      {"a line that does not end", "a\nb", "a\n", "", false},
      {"a death", "before\n" + kDied + "after\n", "before\nafter\n",
       "Primary job terminated normally, but 1 process returned a non-zero exit code. Per "
       "user-direction, the job has been aborted. mpirun noticed that process rank 1 with PID 0 on "
       "node alpha exited on signal 9 (Killed).",
       false},
      {"lines with a process before them", "[alpha:4711] 2 more processes\n[a] b: 1\n",
       "[a] b: 1\n", "[alpha:4711] 2 more processes", false},
      {"its own name", "mpirun: killing job...\n", "", "mpirun: killing job...", false},
      {"an error within a block that does not end", kRule + "\nhelp\nerror: x\n    y\n",
       "error: x\n    y\n", "help", true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    LauncherWords whole, bytewise;
    EXPECT_EQ(whole.pass(c.bytes), c.passed);
    EXPECT_EQ(whole.own(), c.own);
    EXPECT_EQ(whole.error_seen(), c.error);
    std::string passed;
    for (const char byte : c.bytes) passed += bytewise.pass(std::string(1, byte));
    EXPECT_EQ(passed, c.passed);
  }
  LauncherWords cut;
  EXPECT_EQ(cut.pass("a\nb"), "a\n");
  EXPECT_EQ(cut.rest(), "b\n");
  EXPECT_EQ(cut.rest(), "");
}

/// Without mpirun a line that looks like one of its own is a rank's.
TEST(LauncherWords, OfRanksAloneAreAllPassedOn) {
  LauncherWords words(false);
  const std::string all = kDied + "mpirun: no\n[alpha:4711] 2 more\nerror: a\n    at b\n";
  EXPECT_EQ(words.pass(all + "error: c\n    at d\n"), all) << "but for a second error";
  EXPECT_EQ(words.own(), "");
  EXPECT_TRUE(words.error_seen());
}

TEST(LauncherWords, NameTheRankThatDied) {
  LauncherWords words;
  words.pass(kDied);
  EXPECT_EQ(rank_that_died(words.own()), "rank 1, on alpha,");
  EXPECT_EQ(rank_that_died("something else"), "");
  EXPECT_EQ(rank_that_died(""), "");
}

}  // namespace
}  // namespace tessera
