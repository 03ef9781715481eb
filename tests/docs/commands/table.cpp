#include "docs/commands/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "docs/commands/extract.h"

namespace tessera::test {

CommandTable read_command_table(const std::string& text) {
  CommandTable out;
  std::istringstream in(text);
  std::string section;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with('[')) {
      section = line;
      continue;
    }
    if (section == "[flags]") continue;  // stand_in/program reads them
    const std::size_t arrow = line.find(" => ");
    if (arrow == std::string::npos) {
      ADD_FAILURE() << "commands.txt, " << section << ": no ' => ' in '" << line << "'";
      continue;
    }
    const CommandTable::Row row = {line.substr(0, arrow), line.substr(arrow + 4)};
    if (section == "[not run]") {
      out.not_run.push_back(row);
    } else if (section == "[filled in]") {
      out.filled_in.insert(row);
    } else if (section == "[stand-ins]") {
      out.stand_ins.push_back(row);
    } else if (section == "[before]") {
      out.befores.push_back(row);
    } else if (section == "[files]") {
      out.files.push_back(row);
    } else if (section == "[codes]") {
      out.codes.push_back(row);
    } else if (section == "[not compared]") {
      out.not_compared.push_back(row);
    } else if (section == "[other flags]") {
      out.other_flags.insert(row);
    } else {
      ADD_FAILURE() << "commands.txt has no section " << section;
    }
  }
  return out;
}

std::string CommandTable::why_not(const std::string& command) const {
  for (const auto& [beginning, reason] : not_run) {
    if (command.starts_with(beginning)) return reason;
  }
  return {};
}

bool CommandTable::compares(const std::string& command) const {
  return std::ranges::none_of(not_compared,
                              [&](const Row& row) { return command.starts_with(row.first); });
}

std::size_t CommandTable::reasons() const { return not_run.size(); }

std::string CommandTable::filled(const std::string& command, bool has_blanks) const {
  const auto row = filled_in.find(command);
  if (row != filled_in.end()) return row->second;
  if (!has_blanks) return command;
  return "echo this command has blanks, and no row of [filled in] in commands.txt; false";
}

std::string CommandTable::with_stand_ins(std::string command) const {
  for (const auto& [from, to] : stand_ins) {
    for (std::size_t at = 0; (at = command.find(from, at)) != std::string::npos; at += to.size()) {
      command.replace(at, from.size(), to);
    }
  }
  return command;
}

std::vector<std::string> CommandTable::before(const std::string& page,
                                              const std::string& command) const {
  std::vector<std::string> out;
  for (const auto& [where, what] : befores) {
    if ((page + ": " + command).starts_with(where)) out.push_back(what);
  }
  return out;
}

std::vector<CommandTable::Row> CommandTable::files_of(const std::string& page) const {
  std::vector<Row> out;
  for (const auto& [where, name] : files) {
    if (where.starts_with(page + ": ")) out.emplace_back(where.substr(page.size() + 2), name);
  }
  return out;
}

int CommandTable::code_of(const std::string& command) const {
  for (const auto& [beginning, code] : codes) {
    if (command.starts_with(beginning)) return std::stoi(code);
  }
  return 0;
}

void CommandTable::check_filled(const std::string& command) const {
  const auto row = filled_in.find(command);
  if (row == filled_in.end()) return;
  std::istringstream words(command);
  for (std::string word; words >> word;) {
    if (has_blanks(word) || word.find('|') != std::string::npos) continue;
    EXPECT_TRUE((" " + row->second + " ").find(" " + word + " ") != std::string::npos)
        << "commands.txt fills in '" << command << "' without its word '" << word << "'";
  }
}

void CommandTable::check_rows(const std::set<std::string>& commands) const {
  const auto begins = [&](const std::string& text) {
    return std::any_of(commands.begin(), commands.end(),
                       [&](const std::string& one) { return one.starts_with(text); });
  };
  for (const auto& [text, reason] : not_run) {
    EXPECT_TRUE(begins(text)) << "no document shows '" << text << "'; [not run] need not list it";
  }
  for (const auto& [text, whole] : filled_in) {
    EXPECT_TRUE(commands.contains(text)) << "no document shows '" << text << "' of [filled in]";
  }
  for (const auto& [text, code] : codes) {
    EXPECT_TRUE(begins(text)) << "no document shows '" << text << "' of [codes]";
  }
  for (const auto& [text, reason] : not_compared) {
    EXPECT_TRUE(begins(text)) << "no document shows '" << text << "' of [not compared]";
  }
  for (const auto& [where, what] : befores) {
    EXPECT_TRUE(begins(where.substr(where.find(": ") + 2)))
        << "no document shows '" << where << "' of [before]";
  }
}

}  // namespace tessera::test
