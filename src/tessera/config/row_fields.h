#pragma once
/// Fields of runs that train on rows: of tables, sentences of tagged words, or questions.

#include "tessera/config/config.h"
#include "tessera/config/problems.h"

namespace tessera {

/// Its task takes nothing but rows: of tables, sentences of tagged words, or questions.
bool is_of_rows(const ModelConfig& model);
/// Its rows are those of tables, whose columns have names.
bool is_of_tables(const ModelConfig& model);
/// Its rows are sentences of words with a tag each.
bool is_of_words(const ModelConfig& model);
/// They are questions about texts.
bool is_of_questions(const ModelConfig& model);

/// config.data is tables, of which columns train.
inline bool trains_on_rows(const RunConfig& config) {
  return !config.text_column.empty() || is_of_rows(config.model);
}

/// What is wrong with the fields of rows, as far as no file has to be read for it.
void find_row_problems(const RunConfig& config, Problems& problems);

}  // namespace tessera
