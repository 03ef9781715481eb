#include "tessera/ir/gather_scope.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

std::optional<GatherScope> find_gather_scope(std::string_view word) {
  const auto found = std::ranges::find(kGatherScopes, word);
  if (found == kGatherScopes.end()) return std::nullopt;
  return static_cast<GatherScope>(found - kGatherScopes.begin());
}

GatherScope parse_gather_scope(std::string_view word) {
  const std::optional<GatherScope> found = find_gather_scope(word);
  require(found.has_value(), "'", word, "' is no scope of gathering; it can be ",
          join(kGatherScopes));
  return *found;
}

}  // namespace tessera
