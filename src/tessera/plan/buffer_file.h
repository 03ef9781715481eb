#pragma once
/// Files of buffers: the CSV format of MiniMalloc and its benchmark.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/size.h"
#include "tessera/plan/layout_search.h"

namespace tessera {

/// All buffers of a file together, and the end of the highest whose place is given, have at most as
/// many: half of kMaxSize, so that the file with the places of all of them is within the limit too.
inline constexpr std::int64_t kMostBufferBytes = kMaxSize / 2;

/// A header line with names of columns in any order, then a line per buffer; commas between cells,
/// no quotes. `id`, `lower`, `upper` (alive at lower <= t < upper) and `size` must be there, or the
/// public format's other names for them: `buffer`, `buffer_id`; `begin`, `start`; `end`, which is
/// the last time alive. `alignment` and `offset` (a place that is given) may be there; a cell of
/// theirs may be empty. Other columns are kept as they are. A byte order mark at the beginning is
/// left out.
struct BufferFile {
  std::vector<std::string> header;  // cells of the first line
  std::vector<std::vector<std::string>> rows;
  std::vector<TimedBuffer> buffers;  // of each row
};

/// Reads the text of a file; `path` is for messages.
/// Errors: Fault::Data, naming file and line: a column is missing or there twice, a line has more
/// or fewer cells, a number is not one, an id is there twice, a lifetime is empty, a size is
/// negative, all together have more than kMostBufferBytes, offsets that are given make two overlap;
/// no buffers; gaps in lifetimes, which are not supported.
BufferFile parse_buffer_file(std::string_view text, const std::string& path);

/// The file with these offsets: in the column `offset`, or a new one at the end.
std::string to_text(const BufferFile& file, std::span<const std::int64_t> offsets);

}  // namespace tessera
