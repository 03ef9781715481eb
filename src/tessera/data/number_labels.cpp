/// Labels that are numbers: of each row one, or as many as of the others.

#include <algorithm>
#include <cmath>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/label_kind.h"
#include "tessera/data/label_rules.h"
#include "tessera/data/rows.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

float number_of(const std::string& cell, const std::string& where) {
  const std::string_view digits = std::string_view(cell).substr(cell.starts_with('+') ? 1 : 0);
  const std::optional<double> found = finite_number(digits);
  if (!found)
    fail(Fault::Data, where, " has ", label_names_text({&cell, 1}),
         ", and task regression learns finite numbers; correct it, or give --task ",
         "sequence_classification to learn names");
  if (std::abs(*found) >= -kIgnoredNumber)
    fail(Fault::Data, where, " has ", cell, ", and numbers to learn lie within ", kIgnoredNumber,
         " and ", -kIgnoredNumber, "; scale them");
  return static_cast<float>(*found);
}

/// How many numbers each row has, and who says so.
struct NumberCount {
  std::size_t count = 0;  // 0: nobody yet
  std::string whose = {};
  std::string path = {};  // of the file whose line says so
};

void read_numbers_of(const RowsChoice& choice, const TableRows& rows, NumberCount& wanted,
                     std::vector<RowLabel>& out) {
  for_each_label(rows, [&](std::size_t file, std::size_t row, const std::string& cell) {
    if (cell.empty()) return out.push_back({});
    const std::string where = label_place(choice, rows, file, row);
    std::vector<float> numbers;
    for (const std::string& one : listed_labels(choice, cell, where))
      numbers.push_back(number_of(one, label_place(choice, rows, file, row, numbers.size())));
    const std::string& path = rows.files[file].path;
    if (wanted.count == 0 && !numbers.empty())
      wanted = {numbers.size(), text("line ", rows.tables[file].lines[row]), path};
    const bool elsewhere = !wanted.path.empty() && wanted.path != path;
    if (numbers.size() != wanted.count || numbers.empty())
      fail(Fault::Data, where, " has ", counted(std::ssize(numbers), "number"),
           numbers.empty()
               ? ""
               : text(", and ", wanted.whose, elsewhere ? text(" of '", wanted.path, "'") : "",
                      wanted.path.empty() ? "" : " has ", wanted.count),
           "; give each row as many");
    out.push_back({std::move(numbers)});
  });
}

NamedLabels read_numbers(const RowsChoice& choice, const TableParts& rows) {
  NumberCount wanted;
  if (choice.keeps_labels && !choice.known_labels.empty())
    wanted = {choice.known_labels.size(), "the model predicts "};
  else if (choice.classes > 0)
    wanted = {static_cast<std::size_t>(choice.classes), "classes is "};
  NamedLabels out;
  read_numbers_of(choice, rows.train, wanted, out.of_rows);
  read_numbers_of(choice, rows.apart, wanted, out.of_rows);
  const std::vector<std::string>& columns = rows.train.label_columns;
  if (choice.keeps_labels && columns != choice.known_labels &&
      std::ranges::is_permutation(columns, choice.known_labels))
    fail(Fault::Data, label_place(choice, rows.train), ": the model predicts these in another ",
         "order, ", label_names_text(choice.known_labels), "; name them in it");
  const bool known = choice.known_labels.size() == wanted.count;
  out.names = !columns.empty() && !choice.keeps_labels ? columns
              : known                                  ? choice.known_labels
                                                       : unnamed_labels(wanted.count);
  return out;
}

}  // namespace

constinit const LabelKind kNumberLabels = {
    .none = {}, .read = read_numbers, .usual_column = "score", .several = true};

}  // namespace tessera
