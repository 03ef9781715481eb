#pragma once
/// Flags of a command: told in a list, read from arguments, printed as help.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/config/config.h"

namespace tessera {

struct Flag {
  std::string name;               // without the dashes
  std::vector<std::string> also;  // other names
  std::string value;              // what to give, for help: "N"; empty: a switch
  std::string help;
  std::string group = {};      // heading in the help; empty: the command's own
  bool many = false;           // takes all words up to the next flag
  std::string elsewhere = {};  // the command that takes it: this one refuses it and names that
  bool may_be_empty = false;   // an empty value is one, and no variable that is not set
};

struct ParsedFlags {
  std::vector<Setting> settings;  // of a switch the value is "true" or "false"
  std::vector<std::string>
      flags;  // of each setting: the name of its flag, whatever alias was given
  std::vector<std::string> words;  // what belongs to no flag
  bool help = false;

  /// The last value given for the flag, under any of its names; nullptr: none.
  const std::string* find(std::string_view name) const;
  /// Removes a switch of the command's own and returns whether it is on.
  bool take_switch(std::string_view name);
  /// Removes a flag of the command's own and returns its last value; empty: it was not given.
  std::string take_value(std::string_view name);
  /// The same of one that may be given several times: all its values.
  std::vector<std::string> take_values(std::string_view name);
};

/// Reads `--name value`, `--name=value`, `--switch`, and `--` after which all are words. Unknown
/// flags (with the nearest names), missing and empty values become problems.
ParsedFlags parse_flags(const Arguments& arguments, const std::vector<Flag>& flags,
                        Problems& problems);

/// Adds `help` to `out` in lines of at most `columns`, from `indent` on.
void wrap(std::string& out, std::string_view help, std::size_t indent, std::size_t columns);

/// One flag per line, by group, wrapped at `columns`.
std::string flags_help(const std::vector<Flag>& flags, int columns);

/// Every field of a run's configuration as a flag, and --config.
std::vector<Flag> field_flags(const OwnFamilies& families = {});

/// --secret-file FILE, of the commands that run on ranks: run_secret() in launch/run_secret.h.
Flag secret_file_flag();

/// The settings of a TOML file: keys are names of fields, at the top or in a table named after
/// their group. Errors: Fault::Usage: unreadable; bad syntax, with line and column.
std::vector<Setting> read_config_file(const std::string& path, Problems& problems);
/// The same of a file's bytes; `path` is for messages.
std::vector<Setting> parse_config(std::string_view toml, const std::string& path,
                                  Problems& problems);

/// The configuration told by field_flags() in `parsed`, by the file that --config names, and by
/// another `file`.
RunConfig configure(const ParsedFlags& parsed, Problems& problems,
                    std::vector<std::string>& notices, const OwnFamilies& families = {},
                    std::vector<Setting> file = {});

}  // namespace tessera
