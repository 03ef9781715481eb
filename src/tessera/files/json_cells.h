#pragma once
/// A JSON object as a row of a table.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/json_lines.h"

namespace tessera {

/// What some of the keys may be beside what others are.
struct CellRules {
  bool last_may_lack = false;                // the last is missing or null: no text
  bool last_may_be_list = false;             // ... of texts, numbers, true and false: its JSON
  std::span<const std::string> nested = {};  // these may be a list or an object: its JSON
};

/// The values of a line's keys as text, in the order of `keys`: strings as they are, numbers as
/// they are written, true and false as these words. "a.b" is the key b of the object that key a
/// has. A key that is there twice counts as the last one. Errors: Fault::Data: bytes that are not
/// UTF-8, or that are no JSON object, with the column; a key that is missing, with those that are
/// there; null, a list or an object, unless `rules` say so.
std::vector<std::string> cells_in_line(std::string_view line, std::span<const std::string> keys,
                                       const LinePlace& place, const CellRules& rules = {});

/// The keys of a line's object, nested ones with points between. Errors: as above.
std::vector<std::string> keys_in_line(std::string_view line, const LinePlace& place);

}  // namespace tessera
