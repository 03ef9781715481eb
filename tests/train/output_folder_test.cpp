#include "tessera/train/output_folder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "data/test_data.h"

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
  EXPECT_EQ(notices[0], "took over the lock of a run that is gone: host alpha, process 4711");
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
  EXPECT_NE(message.find("(No locks available), so it is not known whether the run that '" +
                         folder / "lock" +
                         "' names still writes there (host alpha, process 4711); make sure that "
                         "it does not, remove that file"),
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
