#pragma once
/// Files in which a user gives names to what lies somewhere.

#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// A file of lines `name = "path"`; paths are relative to its folder.
struct NamesFile {
  const char* variable;  // of the environment, that tells another file
  const char* standard;  // below the home folder
  const char* what;      // "model": what a name stands for
  const char* path;      // "folder": what stands behind it
};
inline constexpr NamesFile kModelNames = {"TESSERA_MODELS", ".config/tessera/models.toml", "model",
                                          "folder"},
                           kDataNames = {"TESSERA_DATA", ".config/tessera/data.toml", "data set",
                                         "path"};

/// What the file says of a name; empty: nothing. Errors: Fault::Usage: it is damaged, or the
/// variable names it and it is not there.
std::string registered(const NamesFile& names, const std::string& name);
/// The names in it; none: there is no file. `file` becomes its path.
std::vector<std::string> registered_names(const NamesFile& names, std::string& file);

}  // namespace tessera
