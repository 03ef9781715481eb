#include <algorithm>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/label_kind.h"
#include "tessera/data/label_rules.h"
#include "tessera/data/rows.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

/// Every label in order.
std::vector<std::string> all_labels(const TableRows& rows) {
  std::vector<std::string> out;
  for (const Table& table : rows.tables)
    out.insert(out.end(), table.columns.back().begin(), table.columns.back().end());
  return out;
}

/// Rows whose label is one of `none` are left out.
void leave_out_labels(TableRows& rows, std::span<const std::string> none) {
  for (std::size_t file = 0; file < rows.tables.size(); ++file) {
    Table& table = rows.tables[file];
    std::vector<bool> left(table.lines.size());
    for (const std::string& word : none) {
      std::int64_t count = 0;
      for (std::size_t row = 0; row < left.size(); ++row) {
        if (table.columns.back()[row] != word) continue;
        left[row] = true;
        ++count;
      }
      if (count > 0)
        rows.notices.push_back(
            text(counted(count, "row"), " of '", rows.files[file].path, "' ",
                 count == 1 ? "has" : "have", " the label ", word, ", which means no label, and ",
                 count == 1 ? "is" : "are",
                 " skipped; if it is a class, give --classes with the number of classes"));
    }
    const auto keep = [&](auto& column) {
      std::size_t row = 0;
      std::erase_if(column, [&](const auto&) { return left[row++]; });
    };
    for (std::vector<std::string>& column : table.columns) keep(column);
    keep(table.lines);
  }
}

void leave_out_unlabelled(const RowsChoice& choice, TableParts& rows) {
  leave_out_labels(rows.train, left_out_labels(all_labels(rows.train), choice.known_labels,
                                               choice.classes, label_place(choice, rows.train)));
  // A word for it that is no class of those that train says it here too; no text is an error.
  std::vector<std::string> classes = all_labels(rows.train);
  classes.insert(classes.end(), choice.known_labels.begin(), choice.known_labels.end());
  std::vector<std::string> none = words_for_no_label(classes);
  std::erase(none, "");
  leave_out_labels(rows.apart, none);
}

/// Numbers of the labels of these rows, which stand in the last column; kIgnoredLabel of `none`.
void number_labels(const TableRows& rows, const RowsChoice& choice,
                   std::span<const std::string> names, std::string_view whose,
                   std::span<const std::string> none, std::vector<RowLabel>& out) {
  const LabelNumbers numbers(names);
  for (std::size_t file = 0; file < rows.tables.size(); ++file) {
    const Table& table = rows.tables[file];
    for (std::size_t row = 0; row < table.lines.size(); ++row) {
      const std::string& name = table.columns.back()[row];
      const bool has_none = std::ranges::find(none, name) != none.end();
      const std::int32_t number = has_none ? kIgnoredLabel : numbers.of(name);
      if (number < 0 && !has_none)
        fail(Fault::Data, label_place(choice, rows, file, row), " has the label ",
             label_names_text({&name, 1}), ", which is not among ", whose, ": ",
             label_names_text(names), "; correct it, or train on rows with all labels");
      out.push_back({number});
    }
  }
}

NamedLabels read_classes(const RowsChoice& choice, const TableParts& rows) {
  const std::vector<std::string> all = all_labels(rows.train);
  auto [names, known] = chosen_label_names(all, choice.known_labels, choice.keeps_labels);
  if (!known)
    require_classes(names, std::ssize(all), "row", choice.classes, label_place(choice, rows.train));
  const std::string_view whose = known ? "the model's labels" : "the labels of the training rows";
  std::vector<std::string> none;
  if (choice.tests) none = words_for_no_label(names);
  NamedLabels out{std::move(names), {}};
  number_labels(rows.train, choice, out.names, whose, none, out.of_rows);
  number_labels(rows.apart, choice, out.names, whose, none, out.of_rows);
  return out;
}

}  // namespace

constinit const LabelKind kClassLabels = {
    .none = {}, .leave_out = leave_out_unlabelled, .read = read_classes};

std::string label_place(const RowsChoice& choice, const TableRows& rows) {
  return text("'", rows.files.front().path, "'",
              rows.files.size() > 1 ? text(" and ", rows.files.size() - 1, " more") : "",
              ", column ", column_names_text({&choice.label_column, 1}));
}

std::string label_place(const RowsChoice& choice, const TableRows& rows, std::size_t file,
                        std::size_t row) {
  return text("'", rows.files[file].path, "' line ", rows.tables[file].lines[row], ": column ",
              column_names_text({&choice.label_column, 1}));
}

std::string label_place(const RowsChoice& choice, const TableRows& rows, std::size_t file,
                        std::size_t row, std::size_t column) {
  if (column >= rows.label_columns.size()) return label_place(choice, rows, file, row);
  return text("'", rows.files[file].path, "' line ", rows.tables[file].lines[row], ": column ",
              column_names_text({&rows.label_columns[column], 1}));
}

}  // namespace tessera
