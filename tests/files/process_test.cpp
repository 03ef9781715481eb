#include "tessera/files/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "files/test_data.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TEST(Process, RunsProgramsWithoutAShell) {
  const TestFolder folder;
  const ProcessResult echo = run_process({"echo", "a  b", "$HOME; *"});
  EXPECT_EQ(echo.output, "a  b $HOME; *\n");
  EXPECT_TRUE(echo.ok());
  EXPECT_EQ(run_process({"pwd"}, {folder.path(), {}, 10}).output,
            fs::canonical(folder.path()).string() + "\n");
  EXPECT_EQ(run_process({"sh", "-c", "echo out; echo err >&2; echo $V; exit 3"}, {"", {"V=7"}, 10})
                .output,
            "out\n7\n");
  const ProcessResult failed = run_process({"sh", "-c", "echo err >&2; exit 3"});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_EQ(failed.errors, "err\n");
  EXPECT_EQ(run_process({"no-such-program-here"}).exit_code, 127);
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}).exit_code, 128 + 9);
  EXPECT_EQ(run_process({"cat"}).output, "");  // its input is empty, so it does not wait for ours
}

TEST(Process, TakesLargeOutputOnBothSides) {
  const ProcessResult both =
      run_process({"sh", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"});
  EXPECT_EQ(both.output.size(), 300'000u);
  EXPECT_EQ(both.errors.size(), 300'000u);
}

TEST(Process, EndsWhatTakesTooLong) {
  const ProcessResult result = run_process({"sleep", "60"}, {"", {}, 1});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + 9);
}

/// Whether a process still runs: one that ended may wait to be seen by its parent.
bool still_runs(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string id, name, state;
  return file >> id >> name >> state && state != "Z" && state != "X";
}

/// Up to 20 seconds.
bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

// A compiler starts others: none goes on where the command is killed, also if a thread started it
// that is gone by then.
TEST(Process, EndsWithTheOneThatStartedIt) {
  const TestFolder folder;
  const std::vector<std::string> shell = {"sh", "-c",
                                          "sleep 600 & echo $! $$ >made; mv made ids; wait"};
  const pid_t command = ::fork();
  ASSERT_GE(command, 0);
  if (command == 0) {
    std::thread([&] { run_process(shell, {folder.path(), {}, 600}); }).join();
    ::_exit(0);
  }
  ASSERT_TRUE(comes_true([&] { return fs::exists(folder / "ids"); }));
  std::string child, grandchild;
  std::ifstream(folder / "ids") >> grandchild >> child;
  EXPECT_TRUE(still_runs(child) && still_runs(grandchild));
  ::kill(command, SIGKILL);
  ::waitpid(command, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return !still_runs(child) && !still_runs(grandchild); }))
      << child << " " << grandchild;
}

TEST(Process, EndsWhatItsProgramStarted) {
  const TestFolder folder;
  EXPECT_TRUE(
      run_process({"sh", "-c", "sleep 600 & echo $! >id; sleep 600"}, {folder.path(), {}, 1})
          .timed_out);
  std::string grandchild;
  std::ifstream(folder / "id") >> grandchild;
  EXPECT_FALSE(grandchild.empty());
  EXPECT_TRUE(comes_true([&] { return !still_runs(grandchild); })) << grandchild;
}

TEST(Process, HasNoTerminal) { EXPECT_FALSE(run_process({"sh", "-c", ": </dev/tty"}).ok()); }

}  // namespace
}  // namespace tessera
