/// --output that names a folder with something in it: what is replaced, what stays, what is told.

#include <filesystem>
#include <string>
#include <vector>

#include "apps/command_test.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kStart =
    "train --data @/text.txt --layers 1 --width 16 --heads 2 --context 8 --threads 1 ";

std::string repeated(const std::string& line, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += line;
  return out;
}

class ReplaceRun : public testing::Test {
 protected:
  ReplaceRun() { folder_.write("text.txt", repeated("a line of text\n", 40)); }
  Ran train(const std::string& flags, int steps = 2) {
    return run(words(folder_.expand(text(kStart, "--steps ", steps, " ", flags))));
  }
  bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  std::string bytes(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(folder_ / name).rdbuf();
    return out.str();
  }

  Folder folder_;
};

TEST_F(ReplaceRun, RemovesItsFilesAndNoOthers) {
  ASSERT_EQ(train("--output @/run --save-every 1 --keep-best --eval-every 2", 4).code, 0);
  folder_.write("run/notes.txt", "mine");
  folder_.write("run/checkpoints/notes.txt", "mine too");
  ASSERT_TRUE(has("run/checkpoints/step-00000004") && has("run/checkpoints/best"));
  const Ran ran = train("--output @/run --overwrite --seed 2");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE((ran.out + ran.err)
                .find(folder_.expand("output '@/run' holds another run (metrics.jsonl, "
                                     "summary.json, checkpoints); it is replaced when training "
                                     "begins")),
            std::string::npos)
      << ran.out << ran.err;
  EXPECT_EQ(bytes("run/notes.txt") + bytes("run/checkpoints/notes.txt"), "minemine too");
  EXPECT_FALSE(has("run/checkpoints/step-00000004") || has("run/checkpoints/step-00000001") ||
               fs::is_symlink(folder_ / "run/checkpoints/best"));
  EXPECT_TRUE(has("run/checkpoints/step-00000002"));
  EXPECT_NE(bytes("run/config.toml").find("seed = 2"), std::string::npos);
  EXPECT_EQ(bytes("run/metrics.jsonl").find("\"step\":4"), std::string::npos);
}

TEST_F(ReplaceRun, AnEmptyFolderAndNoneMayBeOverwritten) {
  fs::create_directory(folder_ / "empty");
  for (const char* output : {"--output @/empty ", "--output @/none "})
    EXPECT_EQ(train(text(output, "--overwrite")).code, 0) << output;
}

TEST_F(ReplaceRun, WhatIsRefusedStaysAsItWas) {
  ASSERT_EQ(train("--output @/run").code, 0);
  fs::create_directory(folder_ / "other");
  fs::create_directory(folder_ / "written");
  folder_.write("other/notes.txt", "mine");
  folder_.write("written/config.toml", "seed = 3\n");
  const struct {
    const char *name, *flags;
    int code;
    const char* message;
  } cases[] = {
      {"without the flag", "--output @/run", 2,
       "output '@/run' holds another run (metrics.jsonl, summary.json, checkpoints); resume it "
       "with --resume auto, replace it with --overwrite, or give a new folder"},
      {"together with --resume", "--output @/run --overwrite --resume auto", 2,
       "--overwrite starts again, but resume auto continues; give one"},
      {"a folder that is no run", "--output @/other --overwrite", 2,
       "--overwrite replaces a run, and output '@/other' has other files but no run; leave it out, "
       "or give another folder"},
      {"weights of the run that goes", "--output @/run --overwrite --init-from @/run", 2,
       "init-from '@/run' lies in output '@/run', whose run --overwrite removes; give another "
       "output"},
      {"other problems", "--output @/run --overwrite --lr -1", 2,
       "lr is -1; it must be at least 0 and at most 1e+30"},
      {"a configuration that the user wrote", "--output @/written --config @/written/config.toml",
       2,
       "output '@/written' holds a config.toml that no run wrote and this run would replace; move "
       "it, or give another output"},
  };
  const auto all = [&] {
    return bytes("run/metrics.jsonl") + bytes("run/summary.json") + bytes("run/config.toml") +
           bytes("run/checkpoints/step-00000002/manifest.json") + bytes("other/notes.txt") +
           bytes("written/config.toml");
  };
  const std::string before = all();
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const Ran ran = train(c.flags);
    EXPECT_EQ(ran.code, c.code);
    EXPECT_EQ(ran.err, "error: " + folder_.expand(c.message) + "\n");
    EXPECT_EQ(all(), before);
  }
  EXPECT_FALSE(has("other/metrics.jsonl") || has("written/metrics.jsonl"));
}

/// A run may stop anywhere between its first loss and its first checkpoint.
TEST_F(ReplaceRun, OfARunWithoutACheckpointNothingIsAsked) {
  const struct {
    const char* name;
    std::vector<std::string> folders;
  } cases[] = {{"losses alone", {}},
               {"a folder for checkpoints", {"checkpoints"}},
               {"a checkpoint that was not finished", {"checkpoints", "checkpoints/.tmp-1-0"}}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string output = folder_ / "retried";
    fs::remove_all(output);
    fs::create_directory(output);
    for (const std::string& name : c.folders) fs::create_directory(output + "/" + name);
    folder_.write("retried/metrics.jsonl",
                  R"({"kind":"train","step":1,"loss":9})" + std::string("\n"));
    folder_.write("retried/config.toml", "seed = 3\n");
    const Ran ran = train("--output @/retried");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE((ran.out + ran.err).find("ended before its first checkpoint; it is replaced"),
              std::string::npos);
    EXPECT_EQ(bytes("retried/metrics.jsonl").find("\"loss\":9"), std::string::npos);
  }
}

}  // namespace
}  // namespace tessera
