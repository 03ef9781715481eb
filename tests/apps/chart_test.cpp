/// `tessera chart`: what it draws, and what it refuses.

#include <gtest/gtest.h>

#include <filesystem>

#include "apps/command_test.h"

namespace tessera {
namespace {

void write_run(const Folder& folder, const std::string& name, const std::string& metrics) {
  std::filesystem::create_directory(folder / name);
  folder.write(name + "/metrics.jsonl", metrics);
}

TEST(ChartCommand, DrawsRunsAndReplacesItsPicture) {
  const Folder folder;
  write_run(folder, "a", "{\"kind\":\"train\",\"step\":1,\"loss\":2.5}\n");
  write_run(folder, "b", "{\"kind\":\"train\",\"step\":1,\"loss\":3.5}\n");
  folder.write("losses.svg", "a picture of somebody else's");
  const Ran refused = run(words(folder.expand("chart @/a @/b --output @/losses.svg")));
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(read(folder / "losses.svg"), "a picture of somebody else's");
  std::filesystem::remove(folder / "losses.svg");
  EXPECT_EQ(run(words(folder.expand("chart @/a --output @/losses.svg"))).code, 0);
  const Ran ran = run(words(folder.expand("chart @/a @/b --output @/losses.svg")));
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out, folder.expand("wrote the losses of @/a, @/b to '@/losses.svg'\n"));
  const std::string picture = read(folder / "losses.svg");
  EXPECT_NE(picture.find(folder.expand("@/a: training 2.5")), std::string::npos) << picture;
  EXPECT_NE(picture.find(folder.expand("@/b: training 3.5")), std::string::npos) << picture;
}

/// A name of a folder does not reach the terminal as it is.
TEST(ChartCommand, NamesOfAnyBytes) {
  const Folder folder;
  write_run(folder, "a\x1b", "{\"kind\":\"train\",\"step\":1,\"loss\":2.5}\n");
  const Ran ran = run(words(folder.expand("chart @/a\x1b --output @/losses.svg")));
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out, folder.expand("wrote the losses of @/a\\x1b to '@/losses.svg'\n"));
}

TEST(ChartCommand, Errors) {
  const Folder folder;
  write_run(folder, "a", "{\"kind\":\"train\",\"step\":1,\"loss\":2.5}\n");
  write_run(folder, "new", "\n");
  write_run(folder, "other", "garbage\n{\"loss\":\"2.5\"}\n\xff\xfe\n");
  write_run(folder, "diverged",
            "{\"kind\":\"train\",\"step\":1,\"loss\":null,\"skipped\":true}\n"
            "{\"kind\":\"valid\",\"step\":1,\"loss\":1e300}\n");
  std::filesystem::create_directory(folder / "empty");
  std::filesystem::create_directory(folder / "folder.svg");
  std::filesystem::create_directory_symlink("a", folder / "link");
  struct Case {
    const char* arguments;
    int code;
    const char* message;
  };
  const Case cases[] = {
      {"chart", 2, "chart takes the folders of one or more runs; give one"},
      {"chart @/empty", 2,
       "'@/empty' has no metrics.jsonl; give the folder of a run, the --output of tessera train"},
      {"chart @/new", 2, "'@/new/metrics.jsonl' has no loss yet; train at least one step"},
      {"chart @/other", 2,
       "'@/other/metrics.jsonl' has no line of a step; give the folder of a run, where tessera "
       "train writes its steps"},
      {"chart @/diverged", 2,
       "'@/diverged/metrics.jsonl' has no loss that can be drawn: each of its 2 is inf, nan, "
       "beyond 1e+100 or of a skipped step; lower --lr, and train in a new folder"},
      {"chart @/a @/a", 2, "'@/a' is given twice; give each run once"},
      {"chart @/a @/a/", 2, "'@/a' and '@/a/' are the same folder; give each run once"},
      {"chart @/link @/a", 2, "'@/link' and '@/a' are the same folder; give each run once"},
      {"chart @/a --output @/a.png", 2, "--output is '@/a.png'; it must end in .svg"},
      {"chart @/a --output @/folder.svg", 2,
       "output '@/folder.svg' is a folder; name a file in it"},
      {"chart @/none @/no --output @/x", 2,
       "3 problems, nothing was started:\n  --output is '@/x'; it must end in .svg\n  '@/none' has "
       "no metrics.jsonl; give the folder of a run, the --output of tessera train\n  '@/no' has no "
       "metrics.jsonl; give the folder of a run, the --output of tessera train"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments);
    const Ran ran = run(words(folder.expand(c.arguments)));
    EXPECT_EQ(ran.code, c.code);
    EXPECT_EQ(ran.err, "error: " + folder.expand(c.message) + "\n");
    EXPECT_EQ(ran.out, "");
  }
}

}  // namespace
}  // namespace tessera
