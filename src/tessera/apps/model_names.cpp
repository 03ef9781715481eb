#include "tessera/apps/model_names.h"

#include <cstdlib>
#include <filesystem>

#include "tessera/apps/names_file.h"
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

}  // namespace

std::string model_folder(const std::string& name) {
  set_hub_root(root_of_environment());
  std::error_code ignored;
  if (name.empty() || fs::exists(name, ignored)) return name;
  if (const std::string folder = registered(kModelNames, name); !folder.empty()) return folder;
  const std::string folder = hub_snapshot(hub_root(), name);
  return folder.empty() ? name : folder;
}

}  // namespace tessera
