/// Forms that people read: Markdown and manual pages.

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

/// Entries that another page has with the same words: by their text, the page's command.
using Known = std::map<std::string, std::string>;

std::string key_of(const HelpEntry& entry) {
  return text(entry.name, "|", entry.value, "|", entry.help);
}

/// The entries that no page before has; of the others their names, and where they are.
std::string table(const HelpSection& section, const std::string& command, Known& known) {
  std::string rows;
  std::map<std::string, std::string> elsewhere;
  for (const HelpEntry& entry : section.entries) {
    const auto [found, is_new] = known.try_emplace(key_of(entry), command);
    if (is_new || !entry.name.starts_with("-")) {
      rows += wrapped(text("- ", code(entry), ": ", plain(entry.help)), "  ");
    } else {
      elsewhere[found->second] += text(" `", entry.name, "`");
    }
  }
  std::string out = rows.empty() ? "" : rows + "\n";
  for (const auto& [page, names] : elsewhere)
    out += wrapped(text("As in [", page, "](#", replaced(page, ' ', "-"), "):", names), "") + "\n";
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
      if (!section.entries.empty()) out += table(section, page.command, known);
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
