/// Where the secret of a run comes from, and which files may hold it.

#include "tessera/launch/run_secret.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <thread>

#include "tessera/base/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class RunSecret : public testing::Test {
 protected:
  RunSecret() {
    std::string name = (fs::temp_directory_path() / "run-secret-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    variables_["XDG_CACHE_HOME"] = (folder_ / "cache").string();
  }
  ~RunSecret() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const fs::path path = folder_ / name;
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path.string();
  }
  std::string secret(const std::string& named = "") const {
    return run_secret(named, [this](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }
  std::string refusal(const std::string& named = "") const {
    try {
      return "taken: " + secret(named);
    } catch (const Error& e) {
      return e.what();
    }
  }

  fs::path folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(RunSecret, TheFirstOfItsSourcesIsTaken) {
  const std::string own = secret();
  EXPECT_EQ(own.size(), 64u);
  EXPECT_EQ(secret(), own) << "it is kept";
  struct stat kept = {};
  ASSERT_EQ(stat((folder_ / "cache/tessera/secret").c_str(), &kept), 0);
  EXPECT_EQ(kept.st_mode & 0777, 0600u);
  variables_["TESSERA_SECRET_FILE"] = file("of-variable", "0123456789abcdef-file\n");
  EXPECT_EQ(secret(), "0123456789abcdef-file");
  variables_["TESSERA_SECRET"] = "0123456789abcdef-variable";
  EXPECT_EQ(secret(), "0123456789abcdef-variable");
  EXPECT_EQ(secret(file("of-flag", "0123456789abcdef-flag")), "0123456789abcdef-flag");
}

/// As of `--secret-file <(decrypt secret)`.
TEST_F(RunSecret, APipeIsReadToItsEnd) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int file = open(pipe.c_str(), O_RDWR);
  std::thread writer([&] {
    for (const std::string_view part : {"0123456789", "abcdef-pipe\n"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(write(file, part.data(), part.size()), std::ssize(part));
    }
    close(file);
  });
  EXPECT_EQ(secret(pipe), "0123456789abcdef-pipe");
  writer.join();
}

TEST_F(RunSecret, AFileThatOthersHaveOrThatHoldsNoSecretIsRefused) {
  struct Case {
    const char* text;
    mode_t mode;
    const char* words;
  };
  for (const Case& c : {Case{"0123456789abcdef", 0640, "can be read or written by other users"},
                        Case{"0123456789abcdef", 0602, "can be read or written by other users"},
                        Case{"short", 0600, "has 5 characters, but a secret needs at least 16"},
                        Case{"", 0600, "has 0 characters"}}) {
    const std::string words = refusal(file("bad", c.text, c.mode));
    EXPECT_NE(words.find(c.words), std::string::npos) << words;
    EXPECT_EQ(words.find("0123456789abcdef"), std::string::npos) << "no message has the secret";
  }
  EXPECT_NE(refusal((folder_ / "none").string()).find("cannot be opened"), std::string::npos);
  EXPECT_NE(refusal(folder_.string()).find("is a folder"), std::string::npos);
  // A pipe that nobody writes to, what is no file, and a file that cannot be read.
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(refusal(pipe).find("is a pipe that nobody writes to"), std::string::npos)
      << refusal(pipe);
  EXPECT_NE(refusal("/dev/null").find("is neither a file nor a pipe"), std::string::npos);
  EXPECT_NE(refusal("/proc/self/mem").find("cannot be read: Input/output error"), std::string::npos)
      << refusal("/proc/self/mem");
  variables_["TESSERA_SECRET"] = "tooshort";
  EXPECT_NE(refusal().find("TESSERA_SECRET has 8 characters"), std::string::npos);
  variables_.clear();
  EXPECT_NE(refusal().find("there is no home folder"), std::string::npos);
}

}  // namespace
}  // namespace tessera
