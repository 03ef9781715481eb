#pragma once
/// Fields that a user gave and that do nothing where they were given.

#include <initializer_list>
#include <string_view>

#include "tessera/train/config.h"

namespace tessera {

/// Errors: Fault::Usage: one of the fields was told; `what` makes nothing of it, and `instead` says
/// what to do.
void refuse_told(const RunConfig& config, std::initializer_list<std::string_view> names,
                 std::string_view what, std::string_view instead);

}  // namespace tessera
