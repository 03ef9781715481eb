#include "tessera/token_files/left_to_right.h"

#include "tessera/base/error.h"

namespace tessera {

void left_to_right(std::span<const std::int32_t> ids, const LeftToRightOptions& options,
                   std::span<std::int32_t> positions, std::span<std::int32_t> first_seen,
                   std::span<std::uint8_t> counts) {
  check(positions.size() == ids.size() && first_seen.size() == ids.size() &&
            counts.size() == ids.size(),
        "masks of ", ids.size(), " tokens");
  std::int32_t begin = 0;  // of the document
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<std::int32_t>(i);
    const bool ends = ids[i] == options.end_of_document && options.end_of_document >= 0;
    positions[i] = options.reset_positions ? at - begin : at;
    first_seen[i] = options.reset_attention ? begin : 0;
    counts[i] = options.mask_loss && ends ? 0 : 1;
    if (ends) begin = at + 1;
  }
}

}  // namespace tessera
