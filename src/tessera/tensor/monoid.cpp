#include "tessera/tensor/monoid.h"

#include <array>

#include "tessera/base/words.h"

namespace tessera {

namespace {
constexpr std::array<std::string_view, 4> kMonoidNames = {"sum", "max", "min", "one"};
}  // namespace

std::string_view to_text(Monoid monoid) { return kMonoidNames[static_cast<std::size_t>(monoid)]; }

Monoid parse_monoid(std::string_view name) {
  return parse_word<Monoid>(kMonoidNames, name, "reduction");
}

}  // namespace tessera
