#pragma once
/// A drawing of amounts as bars below each other.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// An amount with a name, what is written behind it, and the range that it was in, if there is one.
struct Bar {
  std::string name, shown;
  double value = 0;
  std::optional<std::pair<double, double>> range = {};  // lowest, highest
};

/// An SVG picture; the first bar has another colour. Empty where nothing is above 0.
std::string bar_chart(const std::string& title, const std::vector<Bar>& bars);

}  // namespace tessera
