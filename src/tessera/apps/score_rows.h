#pragma once
/// Scores of a table of predictions, as `tessera predict` writes it: `tessera score --predictions`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/models/judge.h"

namespace tessera {

/// Columns of the table.
struct ScoredColumns {
  std::string label = "label", prediction = "prediction", group = {};
  std::string score = "p(1)";  // by which rows of a group are ordered
};

/// Names of metrics and of data sets, for help and messages: "accuracy", "cola", "recall-at-5".
std::vector<std::string> row_metrics();
bool is_row_metric(std::string_view name);

/// The scores of a metric, or of a data set. Errors: as of read_table; Fault::Usage: no column of
/// groups where there have to be some; Fault::Data: with file and line, a cell that is no number, or
/// no label 1 or 0, where it must be one; nothing to score.
NamedMeans scores_of_rows(std::string_view metric, const std::string& path,
                          const ScoredColumns& columns);

}  // namespace tessera
