#pragma once
/// Where tests find data that is too large or too foreign for the repository, and a folder to write
/// in.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "repo_file.h"
#include "tessera/base/error.h"

namespace tessera {

/// The file or folder `name` of the test data: below TESSERA_TEST_DATA, else below ../shared/data
/// beside the sources. Empty where it is absent.
inline std::string test_data(const std::string& name) {
  const char* given = std::getenv("TESSERA_TEST_DATA");
  const std::filesystem::path root = given != nullptr
                                         ? std::filesystem::path(given)
                                         : std::filesystem::path(repo_file("../shared/data"));
  const std::filesystem::path path = root / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

/// What a test says when it skips for want of test_data(name).
inline std::string no_test_data(const std::string& name) {
  return "no test data '" + name + "': set TESSERA_TEST_DATA to the folder that holds it";
}

/// A new folder of the running test, gone with all in it when it goes out of scope.
class TestFolder {
 public:
  TestFolder() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string test = std::string(info->test_suite_name()) + "-" + info->name();
    std::ranges::replace(test, '/', '-');  // of tests with parameters
    std::string name = testing::TempDir() + "tessera-" + test + "-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  /// "folder/name"
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// The message of the Error that `call` throws; "" where it throws none.
template <typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tessera
