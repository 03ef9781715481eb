/// Every command line that a document shows is run, on small inputs, in a copy of the tree with
/// stand-ins for what a test cannot have. commands.txt beside this file says what stands in.

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "docs/commands/extract.h"
#include "docs/commands/table.h"
#include "repo_file.h"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

const std::string kHere = "tests/docs/commands/";

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string repo_text(const std::string& path) { return content_of(repo_file(path)); }

/// The documents, by their names in the tree.
std::vector<std::string> documents() {
  std::vector<std::string> out = {"README.md"};
  for (const char* folder : {"docs", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(repo_file(folder))) {
      if (entry.path().extension() != ".md") continue;
      out.push_back(fs::relative(entry.path(), repo_file("")).string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// A name for the tests of a page: letters and digits.
std::string test_name(const std::string& page) {
  std::string out = page.substr(0, page.size() - 3);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return out;
}

/// As one word of bash.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// What `./dev` is told within sentences is the same on many pages: the first one runs it.
std::set<std::string> told_before(const std::string& page) {
  std::set<std::string> out;
  for (const std::string& other : documents()) {
    if (other == page) break;
    for (const Documented& one : documented_commands(repo_text(other))) {
      for (const std::string& text : one.texts) {
        if (text.starts_with("./dev")) out.insert(text.substr(0, text.find("  ")));
      }
    }
  }
  return out;
}

/// A command of a page, and what is run of it.
struct Step {
  int line = 0;
  std::string shown, run, why_not;
  int block = 0;
  std::vector<std::string> output;  // as the page shows it
};

std::vector<Step> steps_of(const std::string& page, const CommandTable& table) {
  std::vector<Step> out;
  const std::set<std::string> before = told_before(page);
  for (const Documented& one : documented_commands(repo_text(page))) {
    std::string shown, run, why_not;
    for (const std::string& text : one.texts) {
      if (!one.fenced() && (is_name(text) || before.contains(text))) continue;
      why_not = table.why_not(text);
      const std::string filled = table.filled(text, !one.fenced() && has_blanks(text));
      shown += (shown.empty() ? "" : "\n") + text;
      const std::string command = "eval " + quoted(table.with_stand_ins(filled));
      run += one.texts.size() == 1 ? command : "{ " + command + "; } & all+=($!); ";
    }
    if (shown.empty()) continue;
    if (one.texts.size() > 1) {
      run = "all=() ends=0; " + run +
            "for one in ${all[@]}; do wait $one || ends=$?; done; returns $ends";
    }
    out.push_back({one.line, shown, run, why_not, one.block, one.output});
  }
  return out;
}

/// A shell script that runs the steps in order, in one shell, and writes "LINE CODE" of each into
/// the file `codes`, and what it printed into LINE-INDEX.
std::string script_of(const std::string& page, const std::vector<Step>& steps,
                      const CommandTable& table, const fs::path& world) {
  std::ostringstream out;
  const bool tokenizer = repo_text(page).find(" gpt2/") != std::string::npos;
  out << "TOKENIZER_GPT2=" << (tokenizer ? "yes" : "no") << "; . "
      << quoted(repo_file(kHere + "world.sh")) << " " << quoted(TESSERA_BUILD) << " "
      << quoted(repo_file("")) << " " << quoted(world.string()) << " || exit 1\n";
  for (const auto& [first_line, name] : table.files_of(page)) {
    out << "cat >" << quoted(name) << " <<'END OF FILE'\n"
        << block_beginning_with(repo_text(page), first_line) << "END OF FILE\n";
  }
  out << "code=0\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].why_not.empty()) continue;
    for (const std::string& before : table.before(page, steps[i].shown)) {
      out << "{ " << before << "; } >\"$WORLD\"/before 2>&1 || { echo 'before line "
          << steps[i].line << " fails:'; cat \"$WORLD\"/before; }\n";
    }
    out << "new_port; began=$EPOCHREALTIME; returns $code; { " << steps[i].run
        << "; } >\"$WORLD\"/said-" << i << " 2>&1 </dev/null; code=$?; echo " << i
        << " $code $began $EPOCHREALTIME >>\"$WORLD\"/codes\n";
  }
  return out.str();
}

/// The last lines of a file.
std::string tail_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string out;
  for (std::size_t i = lines.size() > 12 ? lines.size() - 12 : 0; i < lines.size(); ++i) {
    out += "    " + lines[i].substr(0, 400) + "\n";
  }
  return out;
}

class DocumentedCommands : public testing::TestWithParam<std::string> {};

TEST_P(DocumentedCommands, Run) {
  const std::string& page = GetParam();
  const CommandTable table = read_command_table(repo_text(kHere + "commands.txt"));
  const std::vector<Step> steps = steps_of(page, table);
  for (const Step& step : steps) {
    EXPECT_NE(step.run.find("eval"), std::string::npos) << page << ":" << step.line;
  }
  std::string made = (fs::temp_directory_path() / "documented-XXXXXX").string();
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const fs::path world = made;
  { std::ofstream(world / "script.sh") << script_of(page, steps, table, world); }
  const std::string command = "bash " + quoted((world / "script.sh").string());
  const int code = std::system(command.c_str());
  ASSERT_EQ(code, 0) << "the script of " << page << " ends with " << code;

  std::ifstream codes(world / "codes");
  std::set<std::size_t> ran;
  std::size_t index = 0;
  int ended = 0;
  double began = 0, end = 0;
  while (codes >> index >> ended >> began >> end) {
    ran.insert(index);
    const Step& step = steps.at(index);
    std::printf("%-7s %5.2f s  %s:%d: %s\n", ended == 0 ? "ok" : "FAILS", end - began, page.c_str(),
                step.line, step.shown.c_str());
    EXPECT_EQ(ended, table.code_of(step.shown))
        << page << ":" << step.line << ": this command ends with " << ended << ":\n  " << step.shown
        << "\n"
        << tail_of(world / ("said-" + std::to_string(index)));
    std::string said;  // by the commands of its block
    for (std::size_t i = 0; i <= index; ++i) {
      if (i == index || steps[i].block == step.block)
        said += content_of(world / ("said-" + std::to_string(i)));
    }
    if (!table.compares(step.shown)) continue;
    for (const std::string& line : not_printed(step.output, said)) {
      ADD_FAILURE() << page << ":" << step.line << ": this command does not print\n  " << line
                    << "\nbut\n"
                    << said.substr(0, 4000);
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].why_not.empty()) {
      EXPECT_TRUE(ran.contains(i))
          << page << ":" << steps[i].line << " did not run: " << steps[i].shown;
    } else {
      std::printf("not run          %s:%d: %s: %s\n", page.c_str(), steps[i].line,
                  steps[i].shown.c_str(), steps[i].why_not.c_str());
    }
  }
  if (std::getenv("TESSERA_KEEP") == nullptr) fs::remove_all(world);
}

/// Pages that show a command.
std::vector<std::string> pages_with_commands() {
  const CommandTable table = read_command_table(repo_text(kHere + "commands.txt"));
  std::vector<std::string> out;
  for (const std::string& page : documents()) {
    // The test examples.wmt_transformer runs what its page shows, with two ranks.
    if (page == "examples/wmt_transformer/README.md") continue;
    if (!steps_of(page, table).empty()) out.push_back(page);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Page, DocumentedCommands, testing::ValuesIn(pages_with_commands()),
                         [](const auto& page) { return test_name(page.param); });

// The table has no row that nothing needs, and few commands that cannot run.
TEST(DocumentedCommandTable, EveryRowIsUsed) {
  const CommandTable table = read_command_table(repo_text(kHere + "commands.txt"));
  std::set<std::string> shown;
  int run = 0, left_out = 0;
  for (const std::string& page : documents()) {
    for (const Documented& one : documented_commands(repo_text(page))) {
      for (const std::string& text : one.texts) {
        if (!one.fenced() && is_name(text)) continue;
        shown.insert(text);
        (table.why_not(text).empty() ? run : left_out) += 1;
        if (table.why_not(text).empty()) table.check_filled(text);
      }
    }
  }
  table.check_rows(shown);
  std::printf("%d commands run, %d do not, for %zu reasons\n", run, left_out, table.reasons());
  EXPECT_LE(table.reasons(), 20U);
}

// A flag that a document names is one of ours, or is listed as another program's.
TEST(DocumentedFlags, Exist) {
  const CommandTable table = read_command_table(repo_text(kHere + "commands.txt"));
  const fs::path help = fs::temp_directory_path() / ("flags-" + std::to_string(getpid()));
  const std::string command = "bash " + quoted(repo_file(kHere + "flags.sh")) + " " +
                              quoted(TESSERA_BUILD) + " " + quoted(repo_file("")) + " >" +
                              quoted(help.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::set<std::string> known;
  std::ifstream in(help);
  for (std::string name; in >> name;) known.insert(name);
  fs::remove(help);
  ASSERT_TRUE(known.contains("--tensor-model-parallel-size"));
  std::set<std::string> others;
  for (const std::string& page : documents()) {
    for (const Flag& flag : flags_in(repo_text(page))) {
      const bool off = flag.name.starts_with("--no-") && known.contains("--" + flag.name.substr(5));
      if (known.contains(flag.name) || off) continue;
      others.insert(flag.name);
      EXPECT_TRUE(table.other_flags.contains(flag.name))
          << page << ":" << flag.line << " names " << flag.name
          << ", which no program here has; if it is another program's, list it in commands.txt";
    }
  }
  for (const auto& [flag, owner] : table.other_flags) {
    EXPECT_TRUE(others.contains(flag))
        << flag << " of " << owner << " is named nowhere, or is ours";
  }
}

}  // namespace
}  // namespace tessera::test
