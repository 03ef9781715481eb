#pragma once
/// Files that are written when all is done: that they cannot be is told before.

#include <string>

#include "tessera/train/problems.h"

namespace tessera {

/// `name`: the flag that names the file. Errors, as problems: it is empty or a folder; its folder
/// is not there, or cannot be written to.
void check_result_file(const std::string& name, const std::string& file, Problems& problems);

}  // namespace tessera
