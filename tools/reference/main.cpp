/// Writes the reference of the commands from what they print with --help: pages of docs/reference,
/// manual pages and completions of shells, below FOLDER: `reference FOLDER`.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "forms.h"
#include "tessera/apps/command.h"
#include "tessera/base/error.h"
#include "tessera/rapidformer/command.h"

namespace tessera {

namespace {

constexpr int kColumns = 110;

std::string printed(const std::function<int(Console&)>& command) {
  std::ostringstream out;
  Console console{out, out, false, kColumns};
  check(command(console) == 0, "--help ends with an error: ", out.str());
  return out.str();
}

/// The page of the program, then one for each command that it lists.
std::vector<HelpPage> tessera_pages() {
  HelpPage first = read_help("tessera", "train Transformers on many devices",
                             printed([](Console& c) { return run_command({"help"}, c); }));
  first.synopsis = {"tessera COMMAND [FLAG...]"};
  std::vector<HelpPage> out = {first};
  for (const HelpSection& section : first.sections) {
    for (const HelpEntry& entry : section.entries) {
      const std::string name = entry.name.substr(entry.name.find(' ') + 1);
      if (!entry.name.starts_with("tessera ") || entry.help.empty() || name == "version" ||
          name.starts_with("help"))
        continue;
      out.push_back(read_help(entry.name, entry.help, printed([&](Console& c) {
                                return run_command({name, "--help"}, c);
                              })));
    }
  }
  return out;
}

HelpPage rapidformer_page() {
  return read_help("rapidformer", "train with flags of Rapidformer and Megatron-LM",
                   printed([](Console& c) { return run_rapidformer({"--help"}, c); }));
}

void write(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file) fail(Fault::Resource, "cannot write '", path.string(), "'");
}

int write_reference(const std::filesystem::path& folder) {
  std::vector<HelpPage> pages = tessera_pages();
  const std::vector<HelpPage> other = {rapidformer_page()};
  write(folder / "bash-completion/completions/tessera", bash_completion("tessera", pages));
  write(folder / "bash-completion/completions/rapidformer", bash_completion("rapidformer", other));
  write(folder / "zsh/vendor-completions/_tessera", zsh_completion("tessera", pages));
  write(folder / "zsh/vendor-completions/_rapidformer", zsh_completion("rapidformer", other));
  write(folder / "fish/vendor_completions.d/tessera.fish", fish_completion("tessera", pages));
  write(folder / "fish/vendor_completions.d/rapidformer.fish",
        fish_completion("rapidformer", other));
  pages.push_back(other.front());
  write(folder / "docs/flags.md", markdown(pages));
  write(folder / "docs/families.md", families_page());
  for (const auto& [name, page] : manual_pages(pages)) write(folder / "man/man1" / name, page);
  return 0;
}

}  // namespace

}  // namespace tessera

int main(int count, char** values) {
  return tessera::main_of([&](tessera::Console&) {
    if (count != 2) tessera::fail(tessera::Fault::Usage, "usage: reference FOLDER");
    return tessera::write_reference(values[1]);
  });
}
