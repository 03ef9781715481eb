/// Our declarations of the interface against the header that a wheel brings (./dev accelerator cpu-old).

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "pjrt/real_plugin.h"

namespace tessera::pjrt {
namespace {

std::string compiler_says(const std::string& source, const std::string& include) {
  const std::string said = testing::TempDir() + "header_said." + std::to_string(getpid());
  const std::string command = "'" TESSERA_COMPILER "' -std=c++20 -fsyntax-only -I'" + include +
                              "' -I'" + repo_file("src") + "' '" + source + "' 2>'" + said + "'";
  const bool fine = std::system(command.c_str()) == 0;
  std::ostringstream words;
  words << std::ifstream(said).rdbuf();
  std::filesystem::remove(said);
  return fine ? "" : "fails: " + words.str();
}

TEST(Header, DeclaresTheSame) {
  const std::string plugin = real_plugin("cpu-old");
  if (plugin.empty()) GTEST_SKIP() << how_to_get("cpu-old");
  const std::string include = std::filesystem::path(plugin).parent_path() / "include";
  ASSERT_TRUE(std::filesystem::exists(include + "/pjrt_c_api.h"));
  const std::string source = repo_file("tests/pjrt/against/header.cpp");
  EXPECT_EQ(compiler_says(source, include), "");
  // The check can fail: one place more.
  const std::string moved =
      testing::TempDir() + "header_moved." + std::to_string(getpid()) + ".cpp";
  std::ostringstream text;
  text << std::ifstream(source).rdbuf();
  std::string words = text.str();
  const std::string from = "static_cast<std::size_t>(call) * sizeof";
  words.replace(words.find(from), from.size(), "(static_cast<std::size_t>(call) + 1) * sizeof");
  std::ofstream(moved) << words;
  EXPECT_NE(compiler_says(moved, include), "");
  std::filesystem::remove(moved);
}

}  // namespace
}  // namespace tessera::pjrt
