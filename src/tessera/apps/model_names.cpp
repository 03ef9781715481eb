#include "tessera/apps/model_names.h"

#include <cstdlib>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/toml/parse_toml.h"
#include "tessera/files/file.h"
#include "tessera/pretrained/hub_cache.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The folder that the variable `name` tells, with `below` behind it; empty: it is not set.
std::string folder_of(const char* name, const char* below) {
  const std::string value = variable(name);
  return value.empty() ? "" : (fs::path(value) / below).string();
}

std::string root_of_environment() {
  for (const std::string& root : {variable("HF_HUB_CACHE"), folder_of("HF_HOME", "hub"),
                                  folder_of("XDG_CACHE_HOME", "huggingface/hub"),
                                  folder_of("HOME", ".cache/huggingface/hub")}) {
    if (!root.empty()) return root;
  }
  return "";
}

/// What the user's file says of the name; empty: nothing.
std::string registered(const std::string& name) {
  const std::string variable_value = variable("TESSERA_MODELS");
  const std::string file =
      variable_value.empty() ? folder_of("HOME", ".config/tessera/models.toml") : variable_value;
  std::error_code ignored;
  if (file.empty() || !fs::exists(file, ignored)) {
    require(variable_value.empty(), "TESSERA_MODELS is '", variable_value,
            "', which does not exist; the file has a line `name = \"folder\"` for each model");
    return "";
  }
  const toml::table names = parse_toml(read_file(file, Fault::Usage), file);
  const toml::node* found = names.get(name);
  if (found == nullptr) return "";
  const auto folder = found->value<std::string>();
  require(folder.has_value(), file, ": ", name, " is not a string; write ", name, " = \"folder\"");
  return (fs::path(file).parent_path() / *folder).string();
}

}  // namespace

std::string model_folder(const std::string& name) {
  set_hub_root(root_of_environment());
  std::error_code ignored;
  if (name.empty() || fs::exists(name, ignored)) return name;
  if (const std::string folder = registered(name); !folder.empty()) return folder;
  const std::string folder = hub_snapshot(hub_root(), name);
  return folder.empty() ? name : folder;
}

}  // namespace tessera
