#include "tessera/tensor/monoid.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"

namespace tessera {

namespace {
constexpr std::array<std::string_view, 3> kMonoidNames = {"sum", "max", "min"};
}  // namespace

std::string_view to_text(Monoid monoid) { return kMonoidNames[static_cast<std::size_t>(monoid)]; }

Monoid parse_monoid(std::string_view name) {
  const auto found = std::find(kMonoidNames.begin(), kMonoidNames.end(), name);
  require(found != kMonoidNames.end(), "'", name, "' is no reduction; there are sum, max and min");
  return static_cast<Monoid>(found - kMonoidNames.begin());
}

}  // namespace tessera
