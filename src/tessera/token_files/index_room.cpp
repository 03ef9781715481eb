#include "tessera/token_files/index_room.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::int64_t kNarrow = 4, kWide = 8;  // bytes of a number

}  // namespace

std::int64_t gpt_index_bytes(const GptIndexRequest& request, const GptIndexPlan& plan) {
  const std::int64_t entries = size_product({plan.epochs, request.last - request.first},
                                            "entries (epochs x sequences of the data)"),
                     documents = size_product({entries, kNarrow}, "bytes of indices"),
                     begins =
                         size_product({plan.samples + 1, 2, wide_begins(entries) ? kWide : kNarrow},
                                      "bytes of indices"),
                     order =
                         size_product({plan.samples, wide_order(plan.samples) ? kWide : kNarrow},
                                      "bytes of indices");
  // Each array is copied when it is complete, and those before it are still there.
  return std::max(
      {documents + 2 * begins, documents + begins + 2 * order, 2 * documents + begins + order});
}

void require_room_for_indices(const std::string& whose, std::int64_t samples, std::int64_t bytes,
                              std::int64_t free) {
  if (free == 0 || bytes <= free) return;
  fail(Fault::Resource, "the run takes ", samples, " samples ", whose, ", whose indices take ",
       bytes_text(bytes), " of memory, but only ", bytes_text(free),
       " is free; give fewer steps, or a smaller batch");
}

}  // namespace tessera
