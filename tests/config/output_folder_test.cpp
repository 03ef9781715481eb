#include "tessera/config/output_folder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>

#include "files/test_data.h"

namespace tessera {
namespace {

FileCalls without_locks() {
  FileCalls out;
  out.flock = [](int, int) {
    errno = ENOLCK;
    return -1;
  };
  return out;
}

std::vector<std::string> notices_of_lock(const std::string& folder, const FileCalls& calls) {
  std::vector<std::string> out;
  const OutputLock lock(folder, out, calls);
  return out;
}

TEST(OutputLock, OneRunAtATime) {
  const TestFolder folder;
  EXPECT_TRUE(notices_of_lock(folder / "run", {}).empty());
  std::vector<std::string> notices;
  const OutputLock lock(folder / "run", notices);
  const std::string message = message_of([&] { notices_of_lock(folder / "run", {}); });
  EXPECT_TRUE(message.starts_with("another run is writing into '" + folder / "run" + "' (host "))
      << message;
}

TEST(OutputLock, ARunThatWasKilledIsNamed) {
  const TestFolder folder;
  std::ofstream(folder / "lock") << "host alpha, process 4711\n";
  const std::vector<std::string> notices = notices_of_lock(folder.path(), {});
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0],
            "took over the lock of a run that no longer exists: host alpha, process 4711");
}

/// The folder was removed: it is held again, unless something of another run is in it by now.
TEST(OutputLock, IsTakenAnewWhereNobodyElseIs) {
  const TestFolder folder;
  const std::string run = folder / "run", gone = "'" + run + "' was removed or replaced";
  std::vector<std::string> notices;
  OutputLock lock(run, notices);
  EXPECT_EQ(lock.hold(true), "");
  std::filesystem::remove_all(run);
  EXPECT_FALSE(lock.held());
  EXPECT_EQ(lock.hold(false), "");
  EXPECT_TRUE(lock.held());
  EXPECT_NE(message_of([&] { notices_of_lock(run, {}); }), "");

  std::filesystem::remove_all(run);
  {
    const OutputLock other(run, notices);
    EXPECT_TRUE(lock.hold(false).starts_with(gone)) << lock.hold(false);
    EXPECT_NE(lock.hold(true).find("another run is writing into"), std::string::npos);
    EXPECT_TRUE(other.held());
    std::ofstream(run + "/metrics.jsonl") << "{}\n";
  }
  const std::string problem = lock.hold(false);
  EXPECT_TRUE(problem.starts_with(gone)) << problem;
  EXPECT_NE(problem.find("another run is in it now (metrics.jsonl)"), std::string::npos) << problem;
  EXPECT_FALSE(std::filesystem::exists(run + "/lock"));
  EXPECT_EQ(lock.hold(true), "") << "the file is its own: only the lock is gone";
}

/// That the system does not answer is no proof that the lock is gone.
TEST(OutputLock, IsHeldUntilItIsKnownToBeGone) {
  namespace fs = std::filesystem;
  const TestFolder folder;
  const std::string run = folder / "run", aside = folder / "aside";
  std::vector<std::string> notices;
  OutputLock lock(run, notices);
  fs::rename(run, aside);
  fs::create_symlink(run, run);  // ELOOP, for a server that has lost the folder for a while
  EXPECT_TRUE(lock.held());
  EXPECT_EQ(lock.hold(true), "");
  fs::remove(run);
  EXPECT_FALSE(lock.held());
  std::ofstream(run) << "a file";
  EXPECT_FALSE(lock.held());
  fs::remove(run);
  fs::rename(aside, run);
  EXPECT_TRUE(lock.held());
}

TEST(OutputLock, WritesTheConfigurationAgainWithTheFolder) {
  const TestFolder folder;
  const std::string run = folder / "run", config = run + "/config.toml";
  const auto content = [&] {
    std::string line;
    std::getline(std::ifstream(config), line);
    return line;
  };
  std::vector<std::string> notices;
  OutputLock lock(run, notices);
  lock.write_config("steps = 1\n");
  EXPECT_EQ(content(), "steps = 1");
  std::filesystem::remove_all(run);
  EXPECT_EQ(lock.hold(false), "");
  EXPECT_EQ(content(), "steps = 1");
  std::filesystem::remove_all(run);
  std::filesystem::create_directory(run);
  std::ofstream(config) << "steps = 2\n";
  EXPECT_EQ(lock.hold(false), "");
  EXPECT_EQ(content(), "steps = 2") << "somebody has put another one there";
}

TEST(OutputLock, StaysWhereAnotherRunHasIt) {
  const TestFolder folder;
  std::vector<std::string> notices;
  std::optional<OutputLock> lock(std::in_place, folder.path(), notices);
  std::filesystem::remove(folder / "lock");
  const OutputLock other(folder.path(), notices);
  lock.reset();
  EXPECT_TRUE(other.held());
}

TEST(OutputLock, AFileSystemWithoutLocksIsNamed) {
  const TestFolder folder;
  const std::vector<std::string> notices = notices_of_lock(folder.path(), without_locks());
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0], "the file system of '" + folder.path() +
                            "' has no locks (No locks available): do not start a second run with "
                            "this --output");
  EXPECT_FALSE(std::filesystem::exists(folder / "lock"));
}

/// Whether the run that left the file still writes is not known: the user decides.
TEST(OutputLock, WithoutLocksAFileThatIsLeftIsRefused) {
  const TestFolder folder;
  std::ofstream(folder / "lock") << "host alpha, process 4711\n";
  const std::string message = message_of([&] { notices_of_lock(folder.path(), without_locks()); });
  EXPECT_NE(
      message.find(
          "(No locks available), so the run named in '" + folder / "lock" +
          "' may still write there (host alpha, process 4711); if it does not, remove that file"),
      message.npos)
      << message;
  EXPECT_TRUE(std::filesystem::exists(folder / "lock"));
}

TEST(OutputLock, AnInterruptedCallIsTriedAgain) {
  const TestFolder folder;
  int calls = 0;
  FileCalls interrupted;
  interrupted.flock = [&](int, int) {
    errno = EINTR;
    return ++calls < 3 ? -1 : 0;
  };
  EXPECT_TRUE(notices_of_lock(folder.path(), interrupted).empty());
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace tessera
