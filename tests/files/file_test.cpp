#include "tessera/files/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "files/test_data.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::size_t num_entries(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(File, ReadsWhatWasWritten) {
  const TestFolder folder;
  std::string bytes(100'000, 'x');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  write_atomically(folder / "a", bytes);
  EXPECT_EQ(read_file(folder / "a"), bytes);
  write_atomically(folder / "a", "");
  EXPECT_EQ(read_file(folder / "a"), "");
  EXPECT_EQ(num_entries(folder.path()), 1u);
}

TEST(File, ReadsRanges) {
  const TestFolder folder;
  write_atomically(folder / "a", "0123456789");
  const InputFile file(folder / "a");
  std::string part(4, ' ');
  file.read(3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(message_of([&] { file.read(8, std::as_writable_bytes(std::span(part))); }),
            "'" + folder.path() +
                "/a' ends at byte 10 but 4 bytes from 8 were expected; it was cut short or changed "
                "after it was opened");
}

TEST(File, SaysWhatIsWrong) {
  const TestFolder folder;
  const std::string in = "'" + folder.path();
  write_atomically(folder / "input.txt", "a");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  struct Case {
    const char* name;
    std::string path, message;
  };
  const Case cases[] = {
      {"a slip of the pen", folder / "inptu.txt",
       "no file " + in + "/inptu.txt'; near names in " + in + "': input.txt"},
      {"nothing like it", folder / "zebra",
       "no file " + in + "/zebra'; nothing in " + in + "' has a name like it"},
      {"no folder", folder / "no/input.txt",
       "no file " + in + "/no/input.txt'; there is no folder " + in + "/no' either"},
      {"a folder", folder.path(), in + "' is a folder where a file is expected; give a file in it"},
      {"opening a pipe would wait for ever", folder / "pipe",
       in + "/pipe' is not a regular file but a pipe, socket or device; save its bytes to a file "
            "first"},
      {"no name", "", "a file name is empty; give the path of a file"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(message_of([&] { read_file(c.path); }), c.message);
  }
}

TEST(File, FaultIsTheCallers) {
  try {
    read_file("/no/such/file", Fault::Checkpoint);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Checkpoint);
  }
}

TEST(File, WithoutCommitNothingChanges) {
  const TestFolder folder;
  write_atomically(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("half of the n");
    EXPECT_EQ(read_file(folder / "a"), "old");
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(num_entries(folder.path()), 1u);
}

/// Two files of which both are on disk before either has its name.
TEST(File, FlushedBytesHaveNoNameYet) {
  const TestFolder folder;
  {
    AtomicFile first(folder / "a"), second(folder / "b"), third(folder / "c");
    for (AtomicFile* file : {&first, &second, &third}) file->write("x");
    first.flush();
    second.flush();
    EXPECT_FALSE(fs::exists(folder / "a"));
    EXPECT_EQ(read_file(second.temporary()), "x");
    EXPECT_NE(message_of([&] { first.write("y"); }).find("a flushed file is written"),
              std::string::npos);
    first.flush();  // once is enough
    first.commit();
    EXPECT_NE(message_of([&] { first.commit(); }).find("a file is committed twice"),
              std::string::npos);
  }
  EXPECT_EQ(read_file(folder / "a"), "x");
  EXPECT_EQ(num_entries(folder.path()), 1u) << "what was flushed and not committed is gone";
}

TEST(File, ADeviceOrAPipeIsNotReplaced) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path :
       {std::string("/dev/null"), std::string("/dev/stdout"), folder / "pipe"}) {
    if (std::filesystem::is_regular_file(path)) continue;  // of this process's output
    EXPECT_NE(
        message_of([&] { AtomicFile(path).commit(); }).find("is a device, a pipe or a socket"),
        std::string::npos)
        << path;
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(File, ALinkStaysAndWhatItLeadsToIsWritten) {
  const TestFolder folder;
  write_atomically(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  write_atomically(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "target"), "new");
}

/// A process writes a part of `path` and is gone: no destructor runs.
void write_and_die(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile killed(path);
    killed.write("half of the n");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

TEST(File, WhatAKilledProcessLeftIsRemoved) {
  const TestFolder folder;
  write_atomically(folder / "a", "old");
  write_atomically(folder / "a.partial", "another file");
  write_atomically(folder / "aa.partial-1-0", "of another file");
  write_and_die(folder / "a");
  EXPECT_EQ(num_entries(folder.path()), 4u);
  remove_unfinished(folder / "a");
  EXPECT_EQ(num_entries(folder.path()), 3u);
  EXPECT_EQ(read_file(folder / "a"), "old");
  remove_unfinished(folder / "no/such/folder");
}

TEST(File, WhatAKilledProcessLeftIsTakenOver) {
  const TestFolder folder;
  for (int turn = 0; turn < 3; ++turn) write_and_die(folder / "a");
  EXPECT_EQ(num_entries(folder.path()), 1u) << "they took one after another's";
  // One that lives keeps its own.
  AtomicFile first(folder / "a"), second(folder / "a");
  EXPECT_NE(first.temporary(), second.temporary());
  first.write("first");
  second.write("2");
  first.flush();
  AtomicFile third(folder / "a");
  EXPECT_NE(third.temporary(), first.temporary()) << "a flushed file is still its writer's";
  second.commit();
  first.commit();
  EXPECT_EQ(read_file(folder / "a"), "first");
  std::filesystem::create_symlink("b", folder / "a.partial-0");
  write_atomically(folder / "a", "new");
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_FALSE(std::filesystem::exists(folder / "b")) << "no link is followed";
  // Left by a process that died between a link to the finished file and the end of the other name.
  write_atomically(folder / "kept", "whole");
  std::filesystem::create_hard_link(folder / "kept", folder / "kept.partial-0");
  write_atomically(folder / "kept", "new");
  write_atomically(folder / "kept", "newer");
  EXPECT_EQ(read_file(folder / "kept"), "newer");
  EXPECT_FALSE(std::filesystem::exists(folder / "kept.partial-0"));
}

TEST(File, WriteErrors) {
  const TestFolder folder;
  EXPECT_EQ(message_of([&] { write_atomically(folder / "no/a", "x"); }),
            "cannot write '" + folder.path() +
                "/no/a': could not create a temporary file beside it: No such file or directory; "
                "make its folder "
                "first");
  EXPECT_EQ(message_of([&] { write_atomically(folder.path(), "x"); }),
            "cannot write '" + folder.path() + "': it is a folder; give the name of a file");
}

TEST(File, NewFilesAreAsReadableAsAnyOther) {
  const TestFolder folder;
  write_atomically(folder / "a", "x");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(static_cast<unsigned>(fs::status(folder / "a").permissions()), 0666u & ~mask);
}

}  // namespace
}  // namespace tessera
