#include "tessera/apps/score_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/data/label_rules.h"
#include "tessera/data/label_scores.h"
#include "tessera/files/table_file.h"

namespace tessera {

namespace {

using Labels = std::vector<std::int32_t>;
using Numbers = std::vector<double>;

/// The columns that a metric reads of a file.
class ScoredRows {
 public:
  ScoredRows(const std::string& path, std::vector<std::string> names)
      : path_(path), names_(std::move(names)) {
    const auto format = table_format(path);
    table_ = tessera::read_table(path, names_, {.format = format ? format : TableFormat::Tsv});
  }

  const std::vector<std::string>& cells(std::size_t column) const { return table_.columns[column]; }

  Numbers numbers(std::size_t column) const {
    Numbers out;
    for (std::size_t row = 0; row < table_.lines.size(); ++row) {
      const std::optional<double> number = finite_number(cells(column)[row]);
      if (!number) refuse(column, row, "is no number");
      out.push_back(*number);
    }
    return out;
  }

  /// Of a column whose labels are 1, right, and 0.
  Labels rights(std::size_t column) const {
    Labels out;
    for (std::size_t row = 0; row < table_.lines.size(); ++row) {
      const std::string& cell = cells(column)[row];
      if (cell != "0" && cell != "1") refuse(column, row, "must be 1, for right, or 0");
      out.push_back(cell == "1");
    }
    return out;
  }

  /// Labels and predictions, by their numbers: by value where all are numbers, else by alphabet.
  /// `pair`: of a data set whose labels these are, or 0 and 1; its second one is label 1.
  std::pair<Labels, Labels> classes(std::size_t label, std::size_t prediction,
                                    std::span<const std::string_view> pair) {
    if (!pair.empty()) return of_pair(label, prediction, pair);
    std::vector<std::string> names;
    for (const std::size_t column : {label, prediction}) {
      for (std::size_t row = 0; row < table_.lines.size(); ++row) {
        if (cells(column)[row].empty()) refuse(column, row, "is no label");
        names.push_back(cells(column)[row]);
      }
    }
    const auto is = [](const char* name) { return [name](const auto& n) { return n == name; }; };
    const bool both = std::ranges::all_of(
        names, [&](const std::string& name) { return is("0")(name) || is("1")(name); });
    if (both) names.insert(names.end(), {"0", "1"});  // also where all rows have one of the two
    const bool are_numbers = std::ranges::all_of(
        names, [](const std::string& name) { return finite_number(name).has_value(); });
    std::ranges::sort(names, [&](const std::string& a, const std::string& b) {
      return are_numbers && *finite_number(a) != *finite_number(b)
                 ? *finite_number(a) < *finite_number(b)
                 : a < b;
    });
    names.erase(std::unique(names.begin(), names.end()), names.end());
    count_ = names.size();
    std::map<std::string_view, std::int32_t> number;
    for (const std::string& name : names)
      number.emplace(name, static_cast<std::int32_t>(number.size()));
    std::pair<Labels, Labels> out;
    for (const std::string& cell : cells(label)) out.first.push_back(number.at(cell));
    for (const std::string& cell : cells(prediction)) out.second.push_back(number.at(cell));
    return out;
  }
  std::size_t class_count() const { return count_; }

 private:
  std::pair<Labels, Labels> of_pair(std::size_t label, std::size_t prediction,
                                    std::span<const std::string_view> pair) {
    count_ = 2;
    const auto read = [&](std::size_t column) {
      Labels out;
      for (std::size_t row = 0; row < table_.lines.size(); ++row) {
        const std::string& cell = cells(column)[row];
        if (cell != "0" && cell != "1" && cell != pair[0] && cell != pair[1])
          refuse(column, row, text("must be 0 or 1, or ", pair[0], " or ", pair[1]));
        out.push_back(cell == "1" || cell == pair[1]);
      }
      return out;
    };
    return {read(label), read(prediction)};
  }
  [[noreturn]] void refuse(std::size_t column, std::size_t row, std::string_view why) const {
    fail(Fault::Data, "'", path_, "' line ", table_.lines[row], ": '",
         printable(cells(column)[row]), "' in column '", printable(names_[column]), "' ", why,
         "; correct it, or name another column");
  }

  const std::string& path_;
  std::vector<std::string> names_;
  Table table_;
  std::size_t count_ = 0;
};

enum class Part { Accuracy, F1, Matthews, Pearson, Spearman };
constexpr std::array<std::string_view, 5> kParts = {"accuracy", "f1", "matthews", "pearson",
                                                    "spearmanr"};

/// A data set of GLUE, or one score.
struct RowMetric {
  std::string_view name;
  std::vector<Part> parts;
  std::vector<std::string_view> pair = {};  // its labels, where their order matters
};
const std::vector<RowMetric>& label_metrics() {
  static const std::vector<RowMetric> out = {
      {"accuracy", {Part::Accuracy}},
      {"f1", {Part::F1}},
      {"matthews", {Part::Matthews}},
      {"pearson", {Part::Pearson}},
      {"spearmanr", {Part::Spearman}},
      {"cola", {Part::Matthews}},
      {"sst2", {Part::Accuracy}},
      {"mrpc", {Part::Accuracy, Part::F1}, {"not_equivalent", "equivalent"}},
      {"stsb", {Part::Pearson, Part::Spearman}},
      {"qqp", {Part::Accuracy, Part::F1}, {"not_duplicate", "duplicate"}},
      {"mnli", {Part::Accuracy}},
      {"qnli", {Part::Accuracy}},
      {"rte", {Part::Accuracy}},
      {"wnli", {Part::Accuracy}},
  };
  return out;
}
constexpr std::string_view kAnswerSets = "multirc", kRecall = "recall-at-";

/// K of "recall-at-K"; none: it is another name.
std::optional<std::int64_t> recall_of(std::string_view name) {
  if (!name.starts_with(kRecall)) return {};
  name.remove_prefix(kRecall.size());
  std::int64_t k = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), k);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && k > 0 ? std::optional(k) : std::nullopt;
}

const RowMetric* find_labels(std::string_view name) {
  const auto found = std::ranges::find(label_metrics(), name, &RowMetric::name);
  return found == label_metrics().end() ? nullptr : &*found;
}

NamedMeans scores_of_numbers(ScoredRows& rows, const std::vector<Part>& parts,
                             const std::string& path) {
  const Numbers labels = rows.numbers(0), found = rows.numbers(1);
  NamedMeans out;
  for (const Part part : parts) {
    const std::optional<double> score =
        part == Part::Pearson ? pearson(labels, found) : spearman(labels, found);
    if (!score)
      fail(Fault::Data, "'", path, "': all labels, or all predictions, are one number, and so ",
           "have no correlation");
    out.emplace_back(kParts[static_cast<std::size_t>(part)], *score);
  }
  return out;
}

NamedMeans scores_of_classes(ScoredRows& rows, const RowMetric& metric) {
  const auto [labels, found] = rows.classes(0, 1, metric.pair);
  NamedMeans out;
  for (const Part part : metric.parts) {
    const double score = part == Part::Accuracy    ? accuracy_of(labels, found)
                         : part == Part::Matthews  ? matthews_correlation(labels, found)
                         : rows.class_count() == 2 ? f1_of_label(labels, found, 1)
                                                   : mean_f1(labels, found);
    out.emplace_back(kParts[static_cast<std::size_t>(part)], score);
  }
  return out;
}

}  // namespace

std::vector<std::string> row_metrics() {
  std::vector<std::string> out;
  for (const RowMetric& metric : label_metrics()) out.emplace_back(metric.name);
  out.emplace_back(kAnswerSets);
  out.push_back(text(kRecall, "K"));
  return out;
}

bool is_row_metric(std::string_view name) {
  return find_labels(name) != nullptr || name == kAnswerSets || recall_of(name);
}

NamedMeans scores_of_rows(std::string_view metric, const std::string& path,
                          const ScoredColumns& columns) {
  if (const RowMetric* const labels = find_labels(metric)) {
    ScoredRows rows(path, {columns.label, columns.prediction});
    const bool of_numbers = labels->parts[0] == Part::Pearson || labels->parts[0] == Part::Spearman;
    return of_numbers ? scores_of_numbers(rows, labels->parts, path)
                      : scores_of_classes(rows, *labels);
  }
  require(!columns.group.empty(), "metric ", metric, " is of groups of rows; give --group-column ",
          "with what the rows of a group share, as the number of a question");
  const std::optional<std::int64_t> k = recall_of(metric);
  ScoredRows rows(path, {columns.label, k ? columns.score : columns.prediction, columns.group});
  if (k)
    return {{std::string(metric), recall_at(*k, rows.cells(2), rows.rights(0), rows.numbers(1))}};
  const AnswerSetScores found = answer_set_scores(rows.cells(2), rows.rights(0), rows.rights(1));
  return {{"f1", found.f1}, {"exact_match", found.exact_match}};
}

}  // namespace tessera
