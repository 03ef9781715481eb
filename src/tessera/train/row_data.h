#pragma once
/// Rows of tables as the data of a run.

#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/config/row_fields.h"
#include "tessera/models/task.h"

namespace tessera {

struct Dataset;
class Vocabulary;

/// Finds the columns of texts and labels that nobody told by their usual names, in the first file.
/// With `may_lack_labels` the column of labels may be missing, as in rows to test on.
/// Errors: as of read_table; Fault::Data: it has none of these names.
void find_columns(RunConfig& config, bool may_lack_labels = false);

/// The labels of a model that exists.
struct KnownLabels {
  std::vector<std::string> names = {};
  bool only = false;  // the model goes on: others are refused
};

/// Reads them, with the vocabulary of a model that exists where there is one. Errors: as of
/// load_rows(data/rows.h), and Fault::Usage: token files; fields that do nothing with rows.
Dataset load_row_data(const RunConfig& config, const KnownLabels& labels,
                      const Vocabulary* vocabulary = nullptr);

/// Reads config.test_data, all of which is held out, with the labels and in the vocabulary of
/// `data`, what the run trains on. reads_labels: as RowsChoice's. Errors: as of load_row_data.
Dataset load_test_rows(const RunConfig& config, const Dataset& data, bool reads_labels);

/// Sets what is open and follows from the data: classes 0 to the number of labels; of rows a
/// context of 0 to the length of the longest sample, up to a multiple of 8, as far as positions
/// reach.
void complete_from_data(RunConfig& config, const Dataset& data);

/// Dataset::digest of the rows that train.
std::string row_digest(const RunConfig& config);

/// What is wrong with the data of a run for what its task takes of rows, and for its fields of
/// samples; false: something is.
bool rows_fit(const Dataset& data, const RunConfig& config, const Task& task, Problems& problems);

/// "'a.csv' is read as a text ...": of data that is read as a text and is a table of which no
/// column is named, or another kind of file; empty: there is none.
std::string notice_of_other_kinds(const RunConfig& config);

}  // namespace tessera
