#include "tessera/apps/names_file.h"

#include <cstdlib>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/toml/parse_toml.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// Empty: there is none.
std::string path_of_names(const NamesFile& names) {
  const char* const given = std::getenv(names.variable);
  const char* const home = std::getenv("HOME");
  const bool is_given = given != nullptr && *given != '\0';
  const std::string file = is_given          ? given
                           : home == nullptr ? ""
                                             : (fs::path(home) / names.standard).string();
  std::error_code ignored;
  if (!file.empty() && fs::exists(file, ignored)) return file;
  require(!is_given, names.variable, " is '", file,
          "', which does not exist; the file has a line `", "name = \"", names.path,
          "\"` for each ", names.what);
  return "";
}

}  // namespace

std::string registered(const NamesFile& names, const std::string& name) {
  const std::string file = path_of_names(names);
  if (file.empty()) return "";
  const toml::table table = parse_toml(read_file(file, Fault::Usage), file);
  const toml::node* found = table.get(name);
  if (found == nullptr) return "";
  const auto path = found->value<std::string>();
  require(path.has_value(), file, ": ", name, " is not a string; write ", name, " = \"", names.path,
          "\"");
  return (fs::path(file).parent_path() / *path).string();
}

std::vector<std::string> registered_names(const NamesFile& names, std::string& file) {
  std::vector<std::string> out;
  file = path_of_names(names);
  if (file.empty()) return out;
  const toml::table table = parse_toml(read_file(file, Fault::Usage), file);
  for (const auto& [name, path] : table) out.emplace_back(name.str());
  return out;
}

}  // namespace tessera
