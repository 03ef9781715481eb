#pragma once
/// The command as tests run it: arguments in; exit code, output and errors out.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tessera/apps/command.h"
#include "tessera/base/text.h"

namespace tessera {

struct Ran {
  int code = 0;
  std::string out, err;
};

inline Ran run(const Arguments& arguments) {
  std::ostringstream out, err;
  Console console{out, err};
  const int code = run_command(arguments, console);
  return {code, out.str(), err.str()};
}

/// "train --steps 3" as arguments.
inline Arguments words(std::string_view line) {
  Arguments out;
  for (const std::string& word : split(line, ' ')) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

/// A new folder of the running test, gone with all in it when it goes out of scope.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "tessera-apps-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name) << bytes;
    return *this / name;
  }
  /// `line` with every @ replaced by the folder's path.
  std::string expand(std::string line) const {
    for (std::size_t at = 0; (at = line.find('@', at)) != std::string::npos; at += path_.size())
      line.replace(at, 1, path_);
    return line;
  }

 private:
  std::string path_;
};

inline std::string read(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

/// Text enough for the tiny models: 3000 characters of 11 kinds.
inline std::string some_text() {
  std::string out;
  for (int i = 0; static_cast<int>(out.size()) < 3000; ++i)
    out += text("line ", i * 7919 % 1000, i % 5 == 0 ? "\n" : " ");
  return out;
}

}  // namespace tessera
