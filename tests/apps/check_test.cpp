/// --check, as commands take it.

#include "apps/command_test.h"

namespace tessera {
namespace {

constexpr const char* kTiny =
    " --preset gpt2-tiny --vocab-size 65 --layers 1 --width 16 --heads 2 --context 8 "
    "--global-batch-size 4 --devices 2";

TEST(CheckFlag, CommandsTellWhatWasCompared) {
  for (const char* command : {"plan", "verify --steps 1"}) {
    const Ran ran = run(words(text(command, kTiny, " --check")));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("notice: --check: "), std::string::npos) << command << ran.err;
    EXPECT_NE(ran.err.find("changed no result"), std::string::npos) << command << ran.err;
  }
}

TEST(CheckFlag, TrainingGoesOnBehindIt) {
  const Folder folder;
  folder.write("a.txt", std::string(400, 'a') + std::string(400, 'b'));
  const Ran ran = run(words(folder.expand(
      "train --preset gpt2-tiny --layers 1 --width 16 --heads 2 --context 8 --global-batch-size 4 "
      "--steps 2 --data @/a.txt --output @/run --check")));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("changed no result"), std::string::npos) << ran.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "run/summary.json"));
}

TEST(CheckFlag, WhatIsTooLargeIsRefused) {
  const Ran ran = run(words("plan --preset gpt2-small --check"));
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_NE(ran.err.find("the limit is 4e+09"), std::string::npos) << ran.err;
  const Ran searched = run(words(text("plan", kTiny, " --auto --check")));
  EXPECT_EQ(searched.code, 2) << searched.err;
  EXPECT_NE(searched.err.find("check"), std::string::npos) << searched.err;
}

}  // namespace
}  // namespace tessera
