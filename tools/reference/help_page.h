#pragma once
/// What a command prints with --help, as parts that can be written in other forms.

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// A line of the help with a name and what it is for.
struct HelpEntry {
  std::string name;   // "--steps"; of `tessera help` "tessera train"
  std::string value;  // "N", "auto|none"; empty: a switch
  std::string help;
  /// Its name, and others, which its help tells.
  std::vector<std::string> names() const;
  /// The words that it can be; empty: others than words from a list.
  std::vector<std::string> words() const;
};

/// Some entries under a heading, behind some lines of text.
struct HelpSection {
  std::string heading;  // "data"; empty: the first
  std::vector<std::string> text;
  std::vector<HelpEntry> entries;
};

struct HelpPage {
  std::string command;                // "tessera train"
  std::string summary;                // "train a model"; empty: nothing says it
  std::vector<std::string> synopsis;  // lines that begin with the command
  std::vector<HelpSection> sections;
};

/// `printed`: what `command --help` printed.
HelpPage read_help(std::string command, std::string summary, std::string_view printed);

}  // namespace tessera
