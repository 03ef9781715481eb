#pragma once
/// The columns of a table that are no texts of a model, to be written beside what it predicts.

#include <span>
#include <string>
#include <vector>

#include "tessera/files/table_file.h"

namespace tessera {

struct OtherColumns {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // a cell for each name
};

/// All columns but `texts`, of the rows that read_table reads for `texts`. Of JSON lines: the keys
/// of all objects, in the order in which they come; a key that a line lacks is an empty cell, and
/// so is null; lists and objects are as JSON, without those of `texts` that lie in them. Errors: as
/// of read_table.
OtherColumns read_other_columns(const std::string& path, std::span<const std::string> texts,
                                const TableOptions& options);

}  // namespace tessera
