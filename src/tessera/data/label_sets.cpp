/// Labels of which a row has any number: names, or of each label 1 or 0.

#include <algorithm>
#include <set>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/label_kind.h"
#include "tessera/data/label_rules.h"
#include "tessera/data/rows.h"

namespace tessera {

namespace {

using Lists = std::vector<std::vector<std::string>>;  // of each row, texts

Lists lists_of(const RowsChoice& choice, const TableRows& rows) {
  Lists out;
  for_each_label(rows, [&](std::size_t file, std::size_t row, const std::string& cell) {
    out.push_back(listed_labels(choice, cell, label_place(choice, rows, file, row)));
    if (rows.label_columns.empty()) std::erase(out.back(), "");
  });
  return out;
}

bool is_flag(const std::string& one) {
  const std::optional<double> number = finite_number(one);
  return number == 0.0 || number == 1.0;
}

/// So many texts of each row are 1 or 0, one for each label; 0: they are names.
std::size_t flags_of_rows(const RowsChoice& choice, const TableRows& rows, const Lists& lists) {
  if (!rows.label_columns.empty()) return rows.label_columns.size();
  std::size_t count = 0;
  bool twice = false;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::vector<std::string>& list = lists[i];
    if (list.empty() && choice.tests) continue;  // perhaps it is not known
    if (count == 0) count = list.size();
    if (list.size() != count || !std::ranges::all_of(list, is_flag)) return 0;
    twice = twice || std::set(list.begin(), list.end()).size() < count;
  }
  if (choice.tests) return count == choice.known_labels.size() ? count : 0;
  return twice || count == 2 ? count : 0;
}

/// Where the labels of a row are told.
struct LabelSetReader {
  const RowsChoice& choice;
  const TableRows& rows;
  const std::vector<std::string>& names;
  std::string_view whose;

  std::vector<float> of_flags(const std::vector<std::string>& list, std::size_t file,
                              std::size_t row) const {
    if (list.size() != names.size())
      fail(Fault::Data, label_place(choice, rows, file, row), " has ",
           counted(std::ssize(list), "number"), ", and there are ",
           counted(std::ssize(names), "label"), ", ", label_names_text(names),
           "; give 1 or 0 for each");
    std::vector<float> out;
    for (const std::string& one : list) {
      if (!is_flag(one))
        fail(Fault::Data, label_place(choice, rows, file, row, out.size()), " has ",
             label_names_text({&one, 1}),
             " where 1 or 0 says whether the row has a label; correct it");
      out.push_back(static_cast<float>(*finite_number(one)));
    }
    return out;
  }

  std::vector<float> of_names(const std::vector<std::string>& list, const LabelNumbers& numbers,
                              const std::string& where) const {
    std::vector<float> out(names.size());
    for (const std::string& name : list) {
      const std::int32_t number = numbers.of(name);
      if (number < 0)
        fail(Fault::Data, where, " has the label ", label_names_text({&name, 1}),
             ", which is not among ", whose, ": ", label_names_text(names),
             "; correct it, or train on rows with all labels");
      out[static_cast<std::size_t>(number)] = 1;
    }
    return out;
  }

  void read(const Lists& lists, bool flags, std::vector<RowLabel>& out) const {
    const LabelNumbers numbers(names);
    std::size_t at = 0;
    for_each_label(rows, [&](std::size_t file, std::size_t row, const std::string& cell) {
      const std::vector<std::string>& list = lists[at++];
      if (cell.empty()) return out.push_back({});
      out.push_back({flags ? of_flags(list, file, row)
                           : of_names(list, numbers, label_place(choice, rows, file, row))});
    });
  }
};

/// What the user is to know where no row has several labels, but some hold what may stand between
/// such; else empty.
std::string notice_of_separators(const RowsChoice& choice, const Lists& lists,
                                 std::span<const std::string> names) {
  for (const std::vector<std::string>& list : lists) {
    if (list.size() > 1) return "";
  }
  for (const char* const other : {";", "|", "/", ","}) {
    const auto found = std::ranges::find_if(
        names, [&](const std::string& name) { return name.find(other) != name.npos; });
    if (found == names.end() || choice.label_separator == other) continue;
    return text("no row has several labels, with '", choice.label_separator, "' between them, but ",
                label_names_text({&*found, 1}), " is one; if it is several, give ",
                "--label-separator '", other, "'");
  }
  return "";
}

NamedLabels read_sets(const RowsChoice& choice, const TableParts& rows) {
  const Lists train = lists_of(choice, rows.train), apart = lists_of(choice, rows.apart);
  const std::size_t flags = flags_of_rows(choice, rows.train, train);
  NamedLabels out;
  bool known = false;
  if (flags > 0) {
    const bool named = !rows.train.label_columns.empty();
    known = choice.keeps_labels || (!named && choice.known_labels.size() == flags);
    out.names = known   ? choice.known_labels
                : named ? rows.train.label_columns
                        : unnamed_labels(flags);
    if (known && named && rows.train.label_columns != out.names)
      fail(Fault::Data, label_place(choice, rows.train), ": these columns are not the labels of ",
           "the model, ", label_names_text(out.names), "; name these, in their order");
  } else {
    std::vector<std::string> all;
    for (const std::vector<std::string>& list : train)
      all.insert(all.end(), list.begin(), list.end());
    ChosenLabels chosen = chosen_label_names(all, choice.known_labels, choice.keeps_labels);
    out.names = std::move(chosen.names);
    known = chosen.known;
    if (out.names.empty())
      fail(Fault::Data, label_place(choice, rows.train),
           " has no label in any row, so there is nothing to learn; give rows with labels");
    if (!known) out.notice = notice_of_separators(choice, train, out.names);
  }
  const std::string_view whose = known ? "the model's labels" : "the labels of the training rows";
  LabelSetReader{choice, rows.train, out.names, whose}.read(train, flags > 0, out.of_rows);
  LabelSetReader{choice, rows.apart, out.names, whose}.read(apart, flags > 0, out.of_rows);
  return out;
}

}  // namespace

constinit const LabelKind kLabelSets = {
    .none = {}, .read = read_sets, .several = true, .may_be_empty = true};

}  // namespace tessera
