#include "repo_file.h"

namespace tessera {

// This file alone is compiled with the path of the tree: a compiler cache serves every copy of it.
std::string repo_file(const std::string& path) { return TESSERA_SOURCE_DIR "/" + path; }

}  // namespace tessera
