/// Forms that people read: Markdown and manual pages.

#include <algorithm>
#include <set>

#include "forms.h"
#include "tessera/base/text.h"
#include "tessera/base/version.h"

namespace tessera {

namespace {

std::string replaced(std::string_view text, char of, std::string_view by) {
  std::string out;
  for (const char c : text) {
    if (c == of) {
      out += by;
    } else {
      out += c;
    }
  }
  return out;
}

/// Outside of code.
std::string plain(std::string_view text) {
  return replaced(replaced(replaced(text, '<', "&lt;"), '*', "\\*"), '_', "\\_");
}

std::string code(const HelpEntry& entry) {
  return text("`", entry.name, entry.value.empty() ? "" : " ", entry.value, "`");
}

/// In lines of at most 120 characters; those behind the first are indented.
std::string wrapped(std::string_view text, std::string_view indent) {
  constexpr std::size_t kColumns = 120;
  std::string out, line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = std::string(indent) + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + "\n";
}

/// A section of a page: the command, and the heading.
struct Place {
  std::string command, heading;
  auto operator<=>(const Place&) const = default;
};

std::string link_to(const Place& place) {
  const std::string words = text(place.command, place.heading.empty() ? "" : ": ", place.heading);
  std::string anchor = replaced(words, ' ', "-");
  std::erase(anchor, ':');
  return text("[", words, "](#", anchor, ")");
}

/// What the pages before have.
struct Known {
  std::map<std::string, Place> entries;                // by all words of an entry
  std::map<std::string, HelpEntry> flags;              // by each name: whose it was first
  std::map<Place, std::vector<std::string>> sections;  // names, in order
};

std::string key_of(const HelpEntry& entry) {
  return text(entry.name, "|", entry.value, "|", entry.help);
}

/// Of flags that change nothing; `rapidformer --help` and notices say why.
std::string without_reason(const std::string& help) {
  if (help.starts_with("always so: ")) return "accepted; it is always so";
  if (help.starts_with("ignored with a notice: ")) return "ignored, with a notice that says why";
  return help;
}

/// "Those of X, without `--a`": shorter than a list of most flags of a section; else empty.
std::string most_of(const Place& place, const std::vector<std::string>& names, const HelpPage& page,
                    const Known& known) {
  if (place.heading.empty()) return {};
  std::set<std::string> here(names.begin(), names.end());
  for (const HelpSection& section : page.sections) {
    for (const HelpEntry& entry : section.entries) here.insert(entry.name);
  }
  std::string lacks;
  std::size_t count = 0;
  for (const std::string& name : known.sections.at(place)) {
    if (here.contains(name)) continue;
    lacks += text(" `", name, "`");
    ++count;
  }
  if (count + 3 >= names.size()) return {};
  return wrapped(text("Those of ", link_to(place), lacks.empty() ? "" : ", without", lacks, "."),
                 "") +
         "\n";
}

/// The entries that no page before has, those of the same words together; of the others their
/// names, and where they are.
std::string table(const HelpSection& section, const HelpPage& page, Known& known) {
  const Place here{page.command, section.heading};
  std::vector<std::pair<std::string, std::string>> rows;  // flags, help
  std::map<Place, std::vector<std::string>> elsewhere;
  std::string same_as;  // the command whose flags are this one's by other names
  for (const HelpEntry& entry : section.entries) {
    const auto [found, is_new] = known.entries.try_emplace(key_of(entry), here);
    const auto flag = known.flags.find(entry.name);
    const bool is_same =
        flag != known.flags.end() && entry.help == text("`", flag->second.name.substr(2), "`");
    known.sections[here].push_back(entry.name);
    for (const std::string& name : entry.names()) known.flags.try_emplace(name, entry);
    const bool is_flag = entry.name.starts_with("-");
    if (is_flag && !is_new) {
      elsewhere[found->second].push_back(entry.name);
    } else if (is_same) {
      same_as = known.entries.at(key_of(flag->second)).command;
    } else {
      const std::string help = without_reason(entry.help);
      const auto same = std::ranges::find(rows, help, [](auto& row) { return row.second; });
      if (same == rows.end() || !is_flag || help.empty()) {
        rows.emplace_back(code(entry), help);
      } else {
        same->first += ", " + code(entry);
      }
    }
  }
  std::string out;
  for (const auto& [flags, help] : rows) out += wrapped(text("- ", flags, ": ", plain(help)), "  ");
  if (!rows.empty()) out += "\n";
  if (!same_as.empty())
    out += text("All other flags of ", link_to({same_as, ""}),
                " mean the same, by all their names.\n\n");
  std::map<std::string, std::string> single;
  for (const auto& [place, names] : elsewhere) {
    const std::string most =
        place.heading == section.heading ? most_of(place, names, page, known) : "";
    out += most;
    for (const std::string& name : names) {
      if (most.empty()) single[place.command] += text(" `", name, "`");
    }
  }
  for (const auto& [command, names] : single)
    out += wrapped(text("As in ", link_to({command, ""}), ":", names), "") + "\n";
  return out;
}

/// For troff: what it would read as commands or hyphens is what was written.
std::string troff(std::string_view text) {
  std::string out = replaced(replaced(text, '\\', "\\e"), '-', "\\-");
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string file_of(const HelpPage& page) { return replaced(page.command, ' ', "-"); }

std::string manual_page(const HelpPage& page, std::span<const HelpPage> all) {
  std::string title = file_of(page);
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string out = text(".TH ", troff(title), " 1 \"\" \"Tessera ", kVersion, "\" \"Tessera\"\n");
  out += text(".SH NAME\n", troff(file_of(page)), " \\- ", troff(page.summary),
              "\n.SH SYNOPSIS\n.nf\n");
  for (const std::string& line : page.synopsis) out += troff(line) + "\n";
  out += ".fi\n";
  bool described = false;
  for (const HelpSection& section : page.sections) {
    if (!section.heading.empty()) {
      out += text(described ? "" : ".SH OPTIONS\n", ".SS \"", troff(section.heading), "\"\n");
    } else if (!section.text.empty() || !described) {
      out += !section.text.empty()                           ? ".SH DESCRIPTION\n"
             : section.entries.front().name.starts_with("-") ? ".SH OPTIONS\n"
                                                             : ".SH COMMANDS\n";
    }
    described = true;
    for (const std::string& line : section.text) out += line.empty() ? ".PP\n" : troff(line) + "\n";
    for (const HelpEntry& entry : section.entries)
      out += text(".TP\n\\fB", troff(entry.name), "\\fR", entry.value.empty() ? "" : " \\fI",
                  troff(entry.value), entry.value.empty() ? "" : "\\fR", "\n", troff(entry.help),
                  "\n");
  }
  out += ".SH SEE ALSO\n";
  std::string others;
  for (const HelpPage& other : all) {
    if (other.command != page.command)
      others += text(others.empty() ? "" : ",\n", ".BR ", troff(file_of(other)), " (1)");
  }
  return out + replaced(others, ',', " ,") + "\n";
}

}  // namespace

std::string markdown(std::span<const HelpPage> pages) {
  std::string out =
      "# Flags\n\nEvery command and flag, as `--help` prints them. This page is made by "
      "`./dev reference`; a test compares it with the program.\n";
  Known known;
  for (const HelpPage& page : pages) {
    if (&page == &pages.front()) continue;  // the list of the others
    out += text("\n## ", page.command, "\n\n", page.summary.empty() ? "" : page.summary + ".\n\n",
                "```text\n");
    for (const std::string& line : page.synopsis) out += line + "\n";
    out += "```\n\n";
    for (const HelpSection& section : page.sections) {
      if (!section.heading.empty())
        out += text("### ", page.command, ": ", section.heading, "\n\n");
      for (const std::string& line : section.text) out += wrapped(plain(line), "");
      if (!section.text.empty()) out += "\n";
      if (!section.entries.empty()) out += table(section, page, known);
    }
    while (out.ends_with("\n\n")) out.pop_back();
  }
  return out;
}

std::map<std::string, std::string> manual_pages(std::span<const HelpPage> pages) {
  std::map<std::string, std::string> out;
  for (const HelpPage& page : pages) out[file_of(page) + ".1"] = manual_page(page, pages);
  return out;
}

}  // namespace tessera
