#pragma once
/// How the labels of a table's rows are read: what a kind of label consists of.

#include <string>
#include <string_view>
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
  bool labelled = false;  // the last column is that of labels, without blanks around
  /// Columns that the last one was made of, as JSON lists; empty: it was one.
  std::vector<std::string> label_columns = {};
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
  std::string notice =
      {};  // what looks as if it were read in another way than it is meant; or empty
};

struct LabelKind {
  RowLabel none;  // of a row whose label is not known
  /// Leaves out rows that say that they have no label; nullptr: none says so.
  void (*leave_out)(const RowsChoice& choice, TableParts& rows) = nullptr;
  /// Of rows that are labelled. Errors: Fault::Data: a label that is none of this kind.
  NamedLabels (*read)(const RowsChoice& choice, const TableParts& rows);
  std::string_view usual_column = {};  // may be called so, beside the usual names of labels
  /// A row may have several: a JSON list, or texts between RowsChoice::label_separator, or a column
  /// for each.
  bool several = false;
  bool may_be_empty = false;  // no text of CSV and TSV is a label
};

/// Texts of a cell of several labels. Errors: Fault::Data, naming `where`: a JSON list of other than
/// texts and numbers.
std::vector<std::string> listed_labels(const RowsChoice& choice, const std::string& cell,
                                       const std::string& where);
/// Calls `take(file, row, cell)` for each label of these rows, in order.
template <typename Take>
void for_each_label(const TableRows& rows, const Take& take) {
  for (std::size_t file = 0; file < rows.tables.size(); ++file) {
    const Table& table = rows.tables[file];
    for (std::size_t row = 0; row < table.lines.size(); ++row)
      take(file, row, table.columns.back()[row]);
  }
}
/// LABEL_0, LABEL_1, ...
std::vector<std::string> unnamed_labels(std::size_t count);

/// "'a.tsv', column 'label'", and "'a.tsv' line 3: column 'label'" of a row of a file.
std::string label_place(const RowsChoice& choice, const TableRows& rows);
std::string label_place(const RowsChoice& choice, const TableRows& rows, std::size_t file,
                        std::size_t row);
/// The same of one of TableRows::label_columns, where there are such.
std::string label_place(const RowsChoice& choice, const TableRows& rows, std::size_t file,
                        std::size_t row, std::size_t column);

}  // namespace tessera
