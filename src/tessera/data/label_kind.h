#pragma once
/// How the labels of a table's rows are read: what a kind of label consists of.

#include <string>
#include <vector>

#include "tessera/data/row_labels.h"
#include "tessera/files/table_file.h"
#include "tessera/files/text.h"

namespace tessera {

struct RowsChoice;

/// The rows of several files, and where they are.
struct TableRows {
  std::vector<Table> tables;
  std::vector<TextFile> files;
  bool labelled = false;             // the last column is that of labels, without blanks around
  std::vector<std::string> notices;  // of rows that were left out
};

/// What a run trains on, and what it holds out as files of its own.
struct TableParts {
  TableRows train, apart;
};

/// Labels of rows, of those apart behind the others, and their names.
struct NamedLabels {
  std::vector<std::string> names;  // Dataset::label_names
  std::vector<RowLabel> of_rows;
};

struct LabelKind {
  RowLabel none;  // of a row whose label is not known
  /// Leaves out rows that say that they have no label; nullptr: none says so.
  void (*leave_out)(const RowsChoice& choice, TableParts& rows) = nullptr;
  /// Of rows that are labelled. Errors: Fault::Data: a label that is none of this kind.
  NamedLabels (*read)(const RowsChoice& choice, const TableParts& rows);
};

/// "'a.tsv', column 'label'", and "'a.tsv' line 3: column 'label'" of a row of a file.
std::string label_place(const RowsChoice& choice, const TableRows& rows);
std::string label_place(const RowsChoice& choice, const TableRows& rows, std::size_t file,
                        std::size_t row);

}  // namespace tessera
