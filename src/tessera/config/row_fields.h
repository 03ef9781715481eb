#pragma once
/// Fields of runs that train on rows: of tables, sentences of tagged words, or questions.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/models/task_kind.h"

namespace tessera {

/// TaskKind::rows of its task.
RowsKind rows_of(const ModelConfig& model);
/// Its task takes nothing but rows: of tables, sentences of tagged words, questions, or texts that
/// belong together.
inline bool is_of_rows(const ModelConfig& model) { return rows_of(model) != RowsKind::None; }
/// Its rows are those of tables, whose columns have names.
inline bool is_of_tables(const ModelConfig& model) { return rows_of(model) == RowsKind::Tables; }

/// Its rows are texts that belong together, in columns of tables.
inline bool is_of_groups(const ModelConfig& model) {
  return rows_of(model) == RowsKind::TextGroups;
}

/// Its rows are a text and its choices, in columns of tables.
inline bool is_of_choices(const ModelConfig& model) { return rows_of(model) == RowsKind::Choices; }

/// Names of columns with commas between, without blanks around each.
std::vector<std::string> listed_columns(std::string_view names);

/// config.data is tables, of which columns train, or other rows.
inline bool trains_on_rows(const RunConfig& config) {
  return !config.text_column.empty() || is_of_rows(config.model);
}

/// Its data is read as it trains: it says so, or has weights before what are no token files.
bool streams(const RunConfig& config);

/// What is wrong with the fields of rows, as far as no file has to be read for it.
void find_row_problems(const RunConfig& config, Problems& problems);

}  // namespace tessera
