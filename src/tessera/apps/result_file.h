#pragma once
/// Files that are written when all is done: that they cannot be, or should not, is told before.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/apps/flags.h"
#include "tessera/config/own_file.h"
#include "tessera/config/problems.h"

namespace tessera {

/// `name`: the flag that names the file. Errors, as problems: it is empty or a folder; its folder
/// is not there, or cannot be written to; a file is there that is not `kind` of ours (none: the
/// command has another rule for that).
void check_result_file(const std::string& name, const std::string& file,
                       std::optional<OwnFile> kind, Problems& problems);

/// The file that a flag of the command's own names, checked so; empty: the flag was not given.
std::string take_result_file(ParsedFlags& parsed, const std::string& name,
                             std::optional<OwnFile> kind, Problems& problems);

struct NamedFile {
  std::string name, file;  // the flag; empty file: none
};
/// What a command with `config` reads, and the file of --config.
std::vector<NamedFile> files_to_read(const RunConfig& config, const ParsedFlags& parsed);

/// Errors, as problems: two results are one file, or a result is a file that is read, or lies in a
/// folder that is.
void check_apart(std::span<const NamedFile> results, std::span<const NamedFile> read,
                 Problems& problems);

}  // namespace tessera
