#pragma once
/// Folders of runs as the words of a command.

#include <string>
#include <vector>

#include "tessera/train/problems.h"

namespace tessera {

/// A run that is named twice, also by another name of its folder, is a problem: it would be shown
/// beside itself.
void find_doubles(const std::vector<std::string>& runs, Problems& problems);

}  // namespace tessera
