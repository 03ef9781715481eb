#include "tessera/tensor/monoid.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"

namespace tessera {

namespace {
constexpr std::array<std::string_view, 3> kNames = {"sum", "max", "min"};
}  // namespace

std::string_view to_text(Monoid monoid) { return kNames[static_cast<std::size_t>(monoid)]; }

Monoid parse_monoid(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  require(found != kNames.end(), "'", name, "' is no reduction; there are sum, max and min");
  return static_cast<Monoid>(found - kNames.begin());
}

}  // namespace tessera
