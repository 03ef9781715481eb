#pragma once
/// commands.txt: what stands in for what a test cannot have, and what cannot run at all.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {

struct CommandTable {
  using Row = std::pair<std::string, std::string>;
  std::vector<Row> not_run;                      // beginning of a command, reason
  std::map<std::string, std::string> filled_in;  // a command with blanks or without its rest, whole
  std::vector<Row> stand_ins;                    // text within a command, what is run in its place
  std::vector<Row> befores;                      // "PAGE: beginning of a command", shell commands
  std::vector<Row> files;                        // "PAGE: first line of a block", file name
  std::vector<Row> codes;                        // beginning of a command, exit code
  std::vector<Row> not_compared;                 // beginning of a command, why its output differs
  std::map<std::string, std::string> other_flags;  // flag, whose it is

  std::string why_not(const std::string& command) const;
  std::size_t reasons() const;
  std::string filled(const std::string& command, bool has_blanks) const;
  std::string with_stand_ins(std::string command) const;
  std::vector<std::string> before(const std::string& page, const std::string& command) const;
  std::vector<Row> files_of(const std::string& page) const;
  int code_of(const std::string& command) const;
  /// What the command prints in a test is what a document shows below it.
  bool compares(const std::string& command) const;

  /// Fails unless the row that completes a command has every word of it that is no blank.
  void check_filled(const std::string& command) const;
  /// Fails for rows that fit none of the commands.
  void check_rows(const std::set<std::string>& commands) const;
};

CommandTable read_command_table(const std::string& text);

}  // namespace tessera::test
