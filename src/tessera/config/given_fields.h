#pragma once
/// Fields that a user gave and that do nothing where they were given.

#include <string_view>
#include <vector>

#include "tessera/config/config.h"

namespace tessera {

/// Names of the fields of data that have an effect under this condition, Field::when.
std::vector<std::string_view> data_fields(std::string_view when);

/// Errors: Fault::Usage: one of the fields was given; `what` makes nothing of it, and `instead` says
/// what to do.
void refuse_given(const RunConfig& config, const std::vector<std::string_view>& names,
                  std::string_view what, std::string_view instead);

}  // namespace tessera
