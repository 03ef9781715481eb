#pragma once
/// How notices call the samples that they speak of.

#include <string_view>

namespace tessera {

/// " of the training part", " of the held-out part"; nothing where no row trains, as of data to
/// test on.
constexpr std::string_view part_text(bool trains, bool some_train) {
  return trains ? " of the training part" : some_train ? " of the held-out part" : "";
}

}  // namespace tessera
