/// The loss over the validation data has one name wherever people read it: validation loss. Keys
/// that programs read are in docs/reference/files.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "apps/command_test.h"
#include "repo_file.h"

namespace tessera {
namespace {

/// In small letters, with one blank wherever there are blanks or new lines.
std::string flowing(const std::string& shown) {
  std::string out;
  for (const char c : shown) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank || !out.ends_with(' '))
      out += blank ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

/// Fails where `shown` calls it otherwise.
void expect_one_word(const std::string& shown, const std::string& where) {
  const std::string low = flowing(shown);
  for (const std::string kind : {"held-out", "held out", "valid", "val", "eval", "evaluation"}) {
    for (const char* end : {" loss", "-loss", " (dots)"})
      EXPECT_EQ(low.find(kind + end), std::string::npos) << where << " says " << kind << end;
  }
}

TEST(LossWord, ScreensPagesAndPictures) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const auto shown = [&](const std::string& line) {
    const Ran ran = run(words(folder.expand(line)));
    EXPECT_EQ(ran.code, 0) << line << "\n" << ran.err;
    expect_one_word(ran.out + ran.err, line);
    return ran.out;
  };
  EXPECT_NE(shown("train --preset gpt2-tiny --layers 1 --data @/text.txt --steps 4 --eval-every 2 "
                  "--keep-best --output @/run")
                .find("step 2  validation loss "),
            std::string::npos);
  shown("evaluate @/run --data @/text.txt");
  shown("report @/run --output @/page.html");
  shown("chart @/run --output @/losses.svg");
  for (const char* file : {"page.html", "losses.svg"}) {
    const std::string page = read(folder / file);
    expect_one_word(page, file);
    EXPECT_NE(page.find("validation (dots)"), std::string::npos) << file;
  }
  for (const char* command : {"train", "sample", "chat", "serve", "predict", "evaluate", "verify",
                              "plan", "bench", "chart", "report", "inspect"})
    shown(text(command, " --help"));
}

/// Code is read for what it prints, on screens that no test sees too.
TEST(LossWord, DocumentsAndCode) {
  int files = 0;
  for (const char* folder : {"docs", "src", "examples", "bench", "README.md"}) {
    const auto check_file = [&](const std::filesystem::path& path) {
      const std::string kind = path.extension();
      if (kind != ".md" && kind != ".cpp" && kind != ".h" && kind != ".py") return;
      if (path.string().find("bench/results/") != std::string::npos) return;  // as it was then
      expect_one_word(read(path), path);
      ++files;
    };
    const std::filesystem::path root = repo_file(folder);
    if (!std::filesystem::is_directory(root))
      check_file(root);
    else
      for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
        check_file(entry.path());
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace tessera
