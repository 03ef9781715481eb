#pragma once
/// What a run trains, on what and with what, in a few lines for people.

#include <string>
#include <vector>

#include "tessera/train/prepare.h"

namespace tessera {

/// Model, data and devices, a line each; `samples` are those that train.
std::vector<std::string> about_run(const PreparedRun& run, const Samples& samples);

}  // namespace tessera
