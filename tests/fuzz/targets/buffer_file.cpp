/// Files of buffers in MiniMalloc's format, and the search for places of those that were accepted.

#include "tessera/plan/buffer_file.h"

#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const BufferFile file = parse_buffer_file(input, "input");
  then([&] {
    check(!file.buffers.empty() && file.buffers.size() == file.rows.size(), "rows got lost");
    const FoundLayout found = search_layout(file.buffers, kMostBufferBytes, 100'000);
    if (found.outcome != LayoutOutcome::Found) return;
    const BufferFile placed = parse_buffer_file(to_text(file, found.offsets), "written");
    for (std::size_t i = 0; i < placed.buffers.size(); ++i)
      check(placed.buffers[i].offset == found.offsets[i], "an offset reads back as another");
    const FoundLayout again = search_layout(placed.buffers, found.height, 100'000);
    check(again.outcome != LayoutOutcome::Impossible, "what was found is called impossible");
  });
}

}  // namespace

const Target kTarget = {1 << 20, 4096, run};

}  // namespace tessera::fuzz
