#include "help_page.h"

#include "tessera/base/text.h"

namespace tessera {

namespace {

/// From this column on help of an entry is printed; a line that is indented as far goes on.
constexpr std::size_t kHelpIndent = 12;

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

/// "  --steps N   training steps" or "  fp32   --no-bf16".
HelpEntry entry_of(std::string_view line) {
  line = trim(line);
  const std::size_t gap = line.find("  ");
  const std::string_view head = line.substr(0, gap);
  const std::size_t comma = head.find(", ");  // "-n, --ranks N"
  const std::size_t begin =
      head.starts_with("-") && comma != std::string_view::npos ? comma + 2 : 0;
  const std::size_t blank = head.starts_with("-") ? head.find(' ', begin) : std::string_view::npos;
  HelpEntry out;
  out.name = head.substr(begin, blank == std::string_view::npos ? blank : blank - begin);
  if (blank != std::string_view::npos) out.value = head.substr(blank + 1);
  if (gap != std::string_view::npos) out.help = trim(line.substr(gap));
  return out;
}

bool is_heading(const std::vector<std::string>& lines, std::size_t i) {
  return i + 1 < lines.size() && indent_of(lines[i]) == 0 && lines[i + 1].starts_with("  -") &&
         !lines[i].ends_with(":") && !lines[i].ends_with(".");
}

}  // namespace

std::vector<std::string> HelpEntry::names() const {
  std::vector<std::string> out = {name};
  const std::size_t begin = help.rfind(" (also --");
  if (begin == std::string::npos || !help.ends_with(")")) return out;
  const std::string list = help.substr(begin + 7, help.size() - begin - 8);
  for (const std::string& other : split(list, ','))
    out.emplace_back(trim(std::string_view(other).substr(0, other.find(" (the"))));
  return out;
}

std::vector<std::string> HelpEntry::words() const {
  std::vector<std::string> out;
  if (value.find('|') == std::string::npos) return out;
  for (const std::string& word : split(value, '|')) {
    if (word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ .") == std::string::npos)
      out.push_back(word);
  }
  return out;
}

HelpPage read_help(std::string command, std::string summary, std::string_view printed) {
  HelpPage out{std::move(command), std::move(summary), {}, {{}}};
  const std::vector<std::string> lines = split(printed, '\n');
  const std::string program = out.command.substr(0, out.command.find(' '));
  std::size_t i = 0;
  for (; i < lines.size() && lines[i].starts_with(program + " "); ++i)
    out.synopsis.push_back(lines[i]);
  for (; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    HelpSection& section = out.sections.back();
    if (line.empty()) {
      if (!section.text.empty() && section.entries.empty()) section.text.emplace_back();
    } else if (is_heading(lines, i)) {
      out.sections.push_back({line, {}, {}});
    } else if (indent_of(line) == 0) {
      if (!section.entries.empty()) out.sections.push_back({"", {}, {}});
      out.sections.back().text.push_back(line);
    } else if (indent_of(line) >= kHelpIndent && !section.entries.empty()) {
      std::string& help = section.entries.back().help;
      help += (help.empty() ? "" : " ") + std::string(trim(line));
    } else {
      section.entries.push_back(entry_of(line));
    }
  }
  std::erase_if(out.sections,
                [](const HelpSection& s) { return s.text.empty() && s.entries.empty(); });
  return out;
}

}  // namespace tessera
