#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/pjrt/plugin.h"

namespace tessera::pjrt {

namespace {

/// Where a plugin lies: the first of the folders that is there, and in it the first .so file.
struct Place {
  std::string_view name;
  std::array<std::string_view, 2> folders;
  std::string_view wheel;  // of the first folder, as tools/accelerator.sh pins it
};
constexpr std::array kPlaces = {
    Place{"cpu", {"cpu", ""}, "fastatomstruct-xla-cpu==2026.6.23"},
    Place{"cpu-old", {"cpu-old", ""}, "xla-cpu-pjrt==0.0.1"},
    Place{"cuda", {"cuda13", "cuda12"}, "jax-cuda13-pjrt==0.12.0.1"},
    Place{"rocm", {"rocm", ""}, "jax-rocm7-pjrt==0.12.0"},
    Place{"tpu", {"tpu", ""}, "libtpu==0.0.52"},
};

/// Empty where there is none. Libraries of NVIDIA beside the plugin are none.
std::string first_library(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // a folder that is not there has no files
  std::vector<std::string> found;
  fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink,
                                      ignored);
  for (; at != fs::recursive_directory_iterator(); at.increment(ignored)) {
    if (at->path().filename() == "nvidia") at.disable_recursion_pending();
    if (at->path().extension() == ".so" && at->is_regular_file(ignored)) {
      found.push_back(at->path().string());
    }
  }
  const auto first = std::min_element(found.begin(), found.end());
  return first == found.end() ? "" : *first;
}

}  // namespace

const std::vector<std::string>& plugin_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Place& place : kPlaces) out.emplace_back(place.name);
    return out;
  }();
  return names;
}

std::string find_plugin(std::string_view name, const std::string& folder) {
  for (const Place& place : kPlaces) {
    if (place.name != name && std::ranges::find(place.folders, name) == place.folders.end())
      continue;
    for (const std::string_view below : place.folders) {
      if (below.empty()) continue;
      const std::string file = first_library(std::filesystem::path(folder) / below);
      if (!file.empty()) return file;
    }
    fail(Fault::Usage, "no plugin for ", name, " in ", folder,
         "; in the sources, ./dev accelerator ", place.folders[0],
         " brings it; elsewhere `pip download --no-deps ", place.wheel,
         "`, and unzip the wheel into a folder ", place.folders[0],
         " there, or into any other, and give --device pjrt:FILE with its .so file");
  }
  return std::string(name);
}

}  // namespace tessera::pjrt
