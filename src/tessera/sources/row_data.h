#pragma once
/// Rows of tables as the data of a run.

#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/config/row_fields.h"
#include "tessera/models/task.h"
#include "tessera/sources/data_source.h"

namespace tessera {

struct Dataset;
class Vocabulary;

/// Finds the columns of texts and labels that nobody told by their usual names, in the first file.
/// With `may_lack_labels` the column of labels may be missing, as in rows to test on.
/// Errors: as of read_table; Fault::Data: it has none of these names.
void find_columns(RunConfig& config, bool may_lack_labels = false);

/// Reads them. Errors: as of load_rows (data/rows.h), load_tagged_rows, load_questions, and
/// Fault::Usage: token files; fields that do nothing with rows.
Dataset load_row_data(const RunConfig& config, const KnownModel& model);

/// Reads config.test_data, all of which is held out, with the labels and in the vocabulary of
/// `trained`. reads_labels: as RowsChoice's. Errors: as of load_row_data.
Dataset load_test_rows(const RunConfig& config, const Dataset& trained, bool reads_labels);

/// DataSource::complete of rows whose task takes nothing else: classes 0 to the number of labels; a
/// context of 0 to the length of the longest sample, up to a multiple of 8, as far as positions
/// reach.
void complete_from_rows(RunConfig& config, const Dataset& data);

/// DataSource::digest.
std::string row_digest(const RunConfig& config, VocabularyKind kind);

/// What is wrong with the data of a run for what its task takes of rows, and for its fields of
/// samples; false: something is.
bool rows_fit(const Dataset& data, const RunConfig& config, const Task& task, Problems& problems);

/// "'a.csv' is read as a text ...": of data that is read as a text and is a table of which no
/// column is named, or another kind of file; empty: there is none.
std::string notice_of_other_kinds(const RunConfig& config);

}  // namespace tessera
