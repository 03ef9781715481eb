#pragma once
/// Command lines in a document: what a reader would copy into a shell.

#include <string>
#include <vector>

namespace tessera::test {

struct Documented {
  int line = 0;  // where it begins
  std::vector<std::string>
      texts;      // several where each is printed behind the prompt of another host
  int block = 0;  // the line of the block that it is in; 0: within a sentence or a table
  std::vector<std::string> output;  // lines that the commands of the block up to this one print

  bool fenced() const { return block != 0; }
};

/// Fenced blocks without a language, or of sh, in which a line begins with a program of ours or a
/// tool of the shell: each of their lines, with those that it goes on in; or, in a block with
/// prompts ("$ "), each line behind one, and the lines below are its output. A block without a
/// language that comes next and has no commands is their output too. And code within a sentence
/// that begins with such a program; each text once.
std::vector<Documented> documented_commands(const std::string& page);

/// The lines of `shown` that `printed` lacks, or has before an earlier one. Blanks, numbers with
/// their units and the s of plurals may be others, and "..." is any text, or any lines.
std::vector<std::string> not_printed(const std::vector<std::string>& shown,
                                     const std::string& printed);

/// A block that a table names by its first line, as it is to be written into a file.
std::string block_beginning_with(const std::string& page, const std::string& first_line);

/// Every --flag in the page, code and text.
struct Flag {
  int line = 0;
  std::string name;
};
std::vector<Flag> flags_in(const std::string& page);

/// "tessera plan": the name of a command rather than a command.
bool is_name(const std::string& text);
/// Words such as FILE, N, ... or [FLAG...] in place of which a reader writes his own.
bool has_blanks(const std::string& text);

}  // namespace tessera::test
