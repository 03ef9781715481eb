#pragma once
/// Files of the repository that tests read.

#include <string>

namespace tessera {

/// The absolute path of a file or folder of the source tree: repo_file("docs/internals/graph-text.md").
std::string repo_file(const std::string& path);

}  // namespace tessera
