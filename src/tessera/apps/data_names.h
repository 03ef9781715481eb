#pragma once
/// Names of data sets, as users give them in place of paths.

#include <string>
#include <vector>

namespace tessera {

/// The words of --data and others like it, with paths in the place of names: the word itself where
/// it is there, a pattern, a weight or the prefix of token files; else what the user's file of
/// names says ($TESSERA_DATA, else ~/.config/tessera/data.toml: `name = "path"` in each line, where
/// the path may be a file, a folder, a pattern or a prefix).
///
/// Errors: Fault::Usage: a word without '/' and '.' that the file lacks, with the names that are
/// there; as of registered (names_file.h).
std::vector<std::string> data_paths(const std::vector<std::string>& words);

}  // namespace tessera
