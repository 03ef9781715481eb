#pragma once
/// Columns of tables of texts with choices, by usual names.

#include <string>

#include "tessera/config/config.h"
#include "tessera/files/table_file.h"

namespace tessera {

/// Fills in text-column, text-pair-column and label-column as far as they are not given: by the
/// names of the columns of the table at `path`. Of text-column what stands behind the first name
/// begins each choice, as sent2 of SWAG. Errors: as of table_columns; Fault::Data: it has no such
/// columns, with those that it has; labels may be missing where `may_lack_labels`.
void find_choice_columns(RunConfig& config, const std::string& path, const TableOptions& options,
                         bool may_lack_labels);

/// All three are known.
bool has_choice_columns(const RunConfig& config);

}  // namespace tessera
