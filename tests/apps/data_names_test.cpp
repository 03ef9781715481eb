/// Names of data sets stand for paths, which are never taken for names.

#include "tessera/apps/data_names.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "apps/command_test.h"
#include "files/test_data.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

class DataNames : public testing::Test {
 protected:
  DataNames() {
    write_atomically(names_, "books = \"sets/books\"\nweb = \"sets/web-*.jsonl.gz\"\nodd = 3\n");
    ::setenv("TESSERA_DATA", names_.c_str(), 1);
  }
  ~DataNames() override { ::unsetenv("TESSERA_DATA"); }
  static std::string paths(const std::vector<std::string>& words) {
    return join(data_paths(words));
  }
  TestFolder folder_;
  const std::string names_ = folder_ / "data.toml";
};

TEST_F(DataNames, StandForPathsBelowTheirFile) {
  EXPECT_EQ(paths({"books"}), folder_ / "sets/books");
  EXPECT_EQ(paths({"0.7", "books", "3e-1", "web"}),
            text("0.7, ", folder_ / "sets/books", ", 3e-1, ", folder_ / "sets/web-*.jsonl.gz"));
  for (const char* const word : {"a.txt", "part-*", "sets/none", "./books", "0.5", "2"})
    EXPECT_EQ(paths({word}), word);
  EXPECT_EQ(paths({folder_.path()}), folder_.path());
}

TEST_F(DataNames, UnknownOnesListWhatIsThere) {
  EXPECT_EQ(
      message_of([&] { paths({"bocks"}); }),
      text("data 'bocks' is no file, and none of the names in '", names_, "': books, odd, web"));
  EXPECT_NE(message_of([&] { paths({"odd"}); }).find("odd is not a string"), std::string::npos);
  ::setenv("TESSERA_DATA", (folder_ / "none.toml").c_str(), 1);
  EXPECT_NE(message_of([&] { paths({"books"}); }).find("for each data set"), std::string::npos);
  ::unsetenv("TESSERA_DATA");
}

TEST_F(DataNames, AreTakenByCommands) {
  std::filesystem::create_directories(folder_ / "sets/books");
  write_atomically(folder_ / "sets/books/a.txt", some_text());
  const Ran ran = run({"train", "--preset", "gpt2-tiny", "--threads", "1", "--data", "books",
                       "--steps", "1", "--output", folder_ / "run"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(
      run({"train", "--preset", "gpt2-tiny", "--data", "bocks", "--output", folder_ / "x"}).code,
      2);
}

}  // namespace
}  // namespace tessera
