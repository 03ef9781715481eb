#include "tessera/data/label_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

namespace {

using Labels = std::span<const std::int32_t>;

void require_rows(std::size_t predicted, std::size_t labels) {
  require(predicted == labels && labels > 0, "scores: ", predicted, " predictions and ", labels,
          " labels; give as many, and at least one");
}

std::vector<double> ranks_of(std::span<const double> x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return x[i]; });
  std::vector<double> out(x.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;  // from 1 on
    for (; begin < end; ++begin) out[order[begin]] = rank;
  }
  return out;
}

/// The rows of each group.
std::map<std::string_view, std::vector<std::size_t>> rows_of(std::span<const std::string> groups) {
  std::map<std::string_view, std::vector<std::size_t>> out;
  for (std::size_t i = 0; i < groups.size(); ++i) out[groups[i]].push_back(i);
  return out;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string_view> out;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    out.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return out;
}

/// The fewest errors in all, then the fewest of each kind in the order of the fields.
struct Errors {
  std::int64_t all = 0, changed = 0, left_out = 0, added = 0;
  friend auto operator<=>(const Errors&, const Errors&) = default;
};

Errors fewest_errors(std::span<const std::string_view> found,
                     std::span<const std::string_view> wanted) {
  // Of the first words wanted and the first j found, for all j.
  std::vector<Errors> row(found.size() + 1);
  for (std::size_t j = 1; j < row.size(); ++j)
    row[j] = {static_cast<std::int64_t>(j), 0, 0, static_cast<std::int64_t>(j)};
  for (const std::string_view word : wanted) {
    Errors before = row[0];  // without this word, of one found less
    ++row[0].all, ++row[0].left_out;
    for (std::size_t j = 1; j < row.size(); ++j) {
      Errors same = before, left = row[j], more = row[j - 1];
      if (found[j - 1] != word) ++same.all, ++same.changed;
      ++left.all, ++left.left_out, ++more.all, ++more.added;
      before = row[j];
      row[j] = std::min({same, left, more});
    }
  }
  return row.back();
}

}  // namespace

double accuracy_of(Labels labels, Labels predicted) {
  require_rows(predicted.size(), labels.size());
  std::int64_t right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += labels[i] == predicted[i];
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

double f1_of_label(Labels labels, Labels predicted, std::int32_t label) {
  require_rows(predicted.size(), labels.size());
  std::int64_t right = 0, either = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const bool is = labels[i] == label, is_predicted = predicted[i] == label;
    right += is && is_predicted;
    either += is + is_predicted;
  }
  return either == 0 ? 0 : 2 * static_cast<double>(right) / static_cast<double>(either);
}

double mean_f1(Labels labels, Labels predicted) {
  require_rows(predicted.size(), labels.size());
  std::set<std::int32_t> all(labels.begin(), labels.end());
  all.insert(predicted.begin(), predicted.end());
  double sum = 0;
  for (const std::int32_t label : all) sum += f1_of_label(labels, predicted, label);
  return sum / static_cast<double>(all.size());
}

double matthews_correlation(Labels labels, Labels predicted) {
  require_rows(predicted.size(), labels.size());
  std::map<std::int32_t, std::array<double, 2>> counts;  // of labels, of predictions
  double right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    right += labels[i] == predicted[i];
    ++counts[labels[i]][0], ++counts[predicted[i]][1];
  }
  const auto n = static_cast<double>(labels.size());
  double both = 0, of_labels = 0, of_predicted = 0;
  for (const auto& [label, count] : counts) {
    both += count[0] * count[1];
    of_labels += count[0] * count[0];
    of_predicted += count[1] * count[1];
  }
  const double vary = (n * n - of_labels) * (n * n - of_predicted);
  return vary == 0 ? 0 : (right * n - both) / std::sqrt(vary);
}

std::optional<double> pearson(std::span<const double> x, std::span<const double> y) {
  require_rows(x.size(), y.size());
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n,
               mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xy += dx * dy, xx += dx * dx, yy += dy * dy;
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0);
}

std::optional<double> spearman(std::span<const double> x, std::span<const double> y) {
  return pearson(ranks_of(x), ranks_of(y));
}

AnswerSetScores answer_set_scores(std::span<const std::string> groups, Labels labels,
                                  Labels predicted) {
  require_rows(groups.size(), labels.size());
  AnswerSetScores out{.f1 = f1_of_label(labels, predicted, 1)};
  const auto questions = rows_of(groups);
  for (const auto& [question, rows] : questions)
    out.exact_match +=
        std::ranges::all_of(rows, [&](std::size_t i) { return labels[i] == predicted[i]; });
  out.exact_match /= static_cast<double>(questions.size());
  return out;
}

double recall_at(std::int64_t k, std::span<const std::string> groups, Labels labels,
                 std::span<const double> scores) {
  require_rows(groups.size(), labels.size());
  require_rows(scores.size(), labels.size());
  double sum = 0;
  std::int64_t counted = 0;
  for (const auto& [group, rows] : rows_of(groups)) {
    const auto is_right = [&](std::size_t i) { return labels[i] == 1; };
    const auto all = std::ranges::count_if(rows, is_right);
    if (all == 0) continue;
    std::vector<std::size_t> best = rows;
    std::ranges::stable_sort(best, std::greater<>(), [&](std::size_t i) { return scores[i]; });
    best.resize(std::min(best.size(), static_cast<std::size_t>(k)));
    sum += static_cast<double>(std::ranges::count_if(best, is_right)) / static_cast<double>(all);
    ++counted;
  }
  require(counted > 0, "recall: no group has a row with label 1; give labels 1 and 0");
  return sum / static_cast<double>(counted);
}

WordErrors word_errors(std::span<const std::string> hypotheses,
                       std::span<const std::string> references) {
  require_rows(hypotheses.size(), references.size());
  WordErrors out;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const std::vector<std::string_view> wanted = words_of(references[i]);
    const Errors errors = fewest_errors(words_of(hypotheses[i]), wanted);
    out.changed += errors.changed;
    out.left_out += errors.left_out;
    out.added += errors.added;
    out.words += std::ssize(wanted);
  }
  require(out.words > 0, "word errors: the references have no word; give texts");
  return out;
}

}  // namespace tessera
