#pragma once
/// Plugins of XLA that ./dev accelerator has brought.

#include <filesystem>
#include <string>

#include "repo_file.h"
#include "tessera/base/error.h"
#include "tessera/pjrt/plugin.h"

namespace tessera::pjrt {

/// The file of the plugin called `name`; empty where it was not brought.
inline std::string real_plugin(const std::string& name) {
  try {
    return find_plugin(name, repo_file("build/plugins"));
  } catch (const Error&) {
    return "";
  }
}

/// For GTEST_SKIP.
inline std::string how_to_get(const std::string& name) {
  return "no plugin " + name + " in build/plugins: ./dev accelerator " + name + " brings it";
}

}  // namespace tessera::pjrt
