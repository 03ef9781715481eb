#include "tessera/ir/recompute.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

Recompute parse_recompute(std::string_view word) {
  const auto found = std::ranges::find(kRecomputes, word);
  require(found != kRecomputes.end(), "'", word, "' is no granularity of recomputing; it can be ",
          join(kRecomputes));
  return static_cast<Recompute>(found - kRecomputes.begin());
}

}  // namespace tessera
