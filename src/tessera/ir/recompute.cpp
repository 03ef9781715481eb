#include "tessera/ir/recompute.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

std::optional<Recompute> find_recompute(std::string_view word) {
  const auto found = std::ranges::find(kRecomputes, word);
  if (found == kRecomputes.end()) return std::nullopt;
  return static_cast<Recompute>(found - kRecomputes.begin());
}

Recompute parse_recompute(std::string_view word) {
  const std::optional<Recompute> found = find_recompute(word);
  require(found.has_value(), "'", word, "' is no granularity of recomputing; it can be ",
          join(kRecomputes));
  return *found;
}

}  // namespace tessera
