#include "tessera/accelerator/program_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

std::string only_file(const std::string& folder) {
  return fs::directory_iterator(folder)->path().string();
}

TEST(ProgramCache, KeepsBytesUnderTheirKey) {
  const TestFolder folder;
  const ProgramCache cache(folder.path() + "/programs");
  const std::string program("a\0b\nc", 5);
  EXPECT_FALSE(cache.find("module"));
  cache.keep("module", program);
  EXPECT_EQ(cache.find("module"), program);
  EXPECT_FALSE(cache.find("modul"));
  EXPECT_FALSE(cache.find("module "));
  cache.keep("module", "");
  EXPECT_EQ(cache.find("module"), "");
  EXPECT_EQ(ProgramCache(folder.path() + "/programs").find("module"), "");
}

TEST(ProgramCache, ADamagedFileIsNone) {
  const TestFolder folder;
  const std::string programs = folder.path() + "/programs";
  const ProgramCache cache(programs);
  cache.keep("module", "a program");
  const std::string path = only_file(programs), whole = read_file(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_atomically(path, bad);
    EXPECT_FALSE(cache.find("module")) << at;
    write_atomically(path, whole.substr(0, at));
    EXPECT_FALSE(cache.find("module")) << at;
  }
  write_atomically(path, whole);
  EXPECT_EQ(cache.find("module"), "a program");
}

TEST(ProgramCache, ThoseThatWereNotUsedForLongestGo) {
  const TestFolder folder;
  const std::string program(1000, 'x');
  const ProgramCache cache(folder.path() + "/programs", 5 * 1100);
  for (int i = 0; i < 8; ++i) {
    cache.keep(text("module ", i), program);
    for (const auto& file : fs::directory_iterator(folder.path() + "/programs"))
      fs::last_write_time(file.path(), file.last_write_time() - std::chrono::hours(1));
    EXPECT_TRUE(cache.find("module 0")) << "it is used, after " << i;
  }
  for (const int gone : {1, 2, 3}) EXPECT_FALSE(cache.find(text("module ", gone))) << gone;
  for (const int kept : {4, 5, 6, 7}) EXPECT_TRUE(cache.find(text("module ", kept))) << kept;
}

TEST(ProgramCache, WithoutAFolderNothingIsKept) {
  const ProgramCache none("");
  none.keep("module", "a program");
  EXPECT_FALSE(none.find("module"));
  const TestFolder folder;
  write_atomically(folder.path() + "/file", "taken");
  const ProgramCache in_a_file(folder.path() + "/file/programs");
  in_a_file.keep("module", "a program");
  EXPECT_FALSE(in_a_file.find("module"));
}

}  // namespace

}  // namespace tessera
