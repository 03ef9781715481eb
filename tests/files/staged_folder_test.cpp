#include "tessera/files/staged_folder.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "files/test_data.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

bool is_ours(std::string_view name) { return name.starts_with("ours"); }

void stage(const std::string& folder, const std::string& what, bool commits) {
  StagedFolder staged(folder);
  write_atomically(staged.path() + "/ours", what);
  write_atomically(staged.path() + "/ours-" + what, what);
  if (commits) staged.commit(is_ours, "ours");
}

TEST(StagedFolder, ComesWholeAndKeepsWhatIsNotReplaced) {
  const TestFolder at;
  const std::string folder = at / "deep/out";
  stage(folder, "a", true);
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"ours", "ours-a"}));
  write_atomically(folder + "/readme", "mine");
  fs::create_directories(folder + "/more");
  write_atomically(folder + "/more/file", "mine too");
  fs::create_symlink("readme", folder + "/link");
  fs::permissions(folder, fs::perms::owner_all);
  stage(folder, "b", false);
  EXPECT_EQ(read_file(folder + "/ours"), "a") << "without commit nothing changes";
  stage(folder, "b", true);
  EXPECT_EQ(names_in(folder),
            (std::vector<std::string>{"link", "more", "ours", "ours-b", "readme"}));
  EXPECT_EQ(read_file(folder + "/ours"), "b");
  EXPECT_EQ(read_file(folder + "/more/file"), "mine too");
  EXPECT_EQ(read_file(folder + "/link"), "mine");
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(names_in(at / "deep"), std::vector<std::string>{"out"}) << "no stage is left";
}

TEST(StagedFolder, IsWrittenThroughALink) {
  const TestFolder at;
  stage(at / "out", "a", true);
  fs::create_directory_symlink("out", at / "link");
  stage(at / "link/", "b", true);
  EXPECT_TRUE(fs::is_symlink(at / "link"));
  EXPECT_EQ(names_in(at / "out"), (std::vector<std::string>{"ours", "ours-b"}));
}

TEST(StagedFolder, WhatAKilledProcessLeftIsTakenOver) {
  const TestFolder at;
  stage(at / "out", "a", true);
  for (int turn = 0; turn < 3; ++turn) {
    const pid_t child = ::fork();
    if (child == 0) {
      StagedFolder killed(at / "out");
      write_atomically(killed.path() + "/ours", "half");
      ::_exit(0);  // no destructor runs
    }
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_EQ(names_in(at.path()), (std::vector<std::string>{"out", "out.partial-0"}));
  {
    const StagedFolder first(at / "out"), second(at / "out");
    EXPECT_NE(first.path(), second.path()) << "one that lives keeps its own";
    EXPECT_TRUE(names_in(first.path()).empty());
  }
  stage(at / "out", "b", true);
  EXPECT_EQ(names_in(at.path()), std::vector<std::string>{"out"});
  EXPECT_EQ(read_file(at / "out/ours"), "b");
}

/// A folder whose parent cannot be written to. The system refuses nothing to root, who is another
/// user here, if root may be.
TEST(StagedFolder, WithoutAPlaceBesideItFilesAreRenamed) {
  const TestFolder at;
  stage(at / "deep/out", "a", true);
  write_atomically(at / "deep/out/readme", "mine");
  const bool root = ::geteuid() == 0;
  if (root) {
    constexpr uid_t kNobody = 65534;
    for (const char* path : {"deep/out", "deep/out/readme", "deep/out/ours", "deep/out/ours-a"})
      if (::chown((at / path).c_str(), kNobody, kNobody) != 0)
        GTEST_SKIP() << "root may give no file to another user here";
    for (const std::string& path : {std::string(at.path()), at / "deep"})
      fs::permissions(path, fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add);
    if (::seteuid(kNobody) != 0) GTEST_SKIP() << "root may write anywhere, and is no other here";
  } else {
    fs::permissions(at / "deep", fs::perms::owner_read | fs::perms::owner_exec);
  }
  std::string failure;
  try {
    stage(at / "deep/out", "b", true);
  } catch (const Error& error) {
    failure = error.what();
  }
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  } else {
    fs::permissions(at / "deep", fs::perms::owner_all);
  }
  EXPECT_EQ(failure, "");
  EXPECT_EQ(names_in(at / "deep/out"), (std::vector<std::string>{"ours", "ours-b", "readme"}));
  EXPECT_EQ(read_file(at / "deep/out/ours"), "b");
}

/// As a volume of a container.
TEST(StagedFolder, AFolderThatSomethingIsMountedOn) {
  const TestFolder at;
  fs::create_directories(at / "out");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // mounts end with it
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", (at / "out").c_str(), "tmpfs", 0, "size=1m") != 0)
      ::_exit(2);
    try {
      for (const char* what : {"a", "b"}) stage(at / "out", what, true);
    } catch (const Error& error) {
      std::cerr << error.what() << "\n";
      ::_exit(1);
    }
    ::_exit(names_in(at / "out") == std::vector<std::string>{"ours", "ours-b"} ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "only root may mount";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StagedFolder, AFileInItsPlaceIsAnError) {
  const TestFolder at;
  write_atomically(at / "out", "a file");
  EXPECT_THROW(stage(at / "out", "a", true), Error);
  EXPECT_EQ(read_file(at / "out"), "a file");
}

}  // namespace
}  // namespace tessera
