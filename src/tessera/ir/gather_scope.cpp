#include "tessera/ir/gather_scope.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

GatherScope parse_gather_scope(std::string_view word) {
  const auto found = std::ranges::find(kGatherScopes, word);
  require(found != kGatherScopes.end(), "'", word, "' is no scope of gathering; it can be ",
          join(kGatherScopes));
  return static_cast<GatherScope>(found - kGatherScopes.begin());
}

}  // namespace tessera
