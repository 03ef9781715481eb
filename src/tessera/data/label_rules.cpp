#include "tessera/data/label_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/data/row_labels.h"

namespace tessera {

namespace {

constexpr const char *kMinusOne = "-1", *kDash = "-";
constexpr const char* kNoLabel[] = {kMinusOne, "-1.0", kDash};
constexpr std::int64_t kFewRows = 10;  // fewer say nothing of what a column is
constexpr std::int64_t kRare = 20;     // more than one in so many is a class rather than none

bool is_whole(double number) { return number == std::floor(number); }

/// They are numbers, and not 0, 1, 2, ... without a gap.
bool are_other_numbers(const std::set<std::string>& names) {
  std::set<double> numbers;
  for (const std::string& name : names) {
    const std::optional<double> number = finite_number(name);
    if (!number) return false;
    numbers.insert(*number);
  }
  double next = 0;
  return std::ranges::any_of(numbers, [&](double number) { return number != next++; });
}

}  // namespace

std::optional<double> finite_number(std::string_view name) {
  double out = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), out);
  const bool whole_name = failure == std::errc() && end == name.data() + name.size();
  return whole_name && std::isfinite(out) ? std::optional(out) : std::nullopt;
}

std::vector<std::string> words_for_no_label(std::span<const std::string> labels,
                                            std::span<const std::string> known) {
  std::set<std::string> classes(labels.begin(), labels.end());
  std::vector<std::string> found;
  for (const char* const word : kNoLabel) {
    if (std::ranges::find(known, word) == known.end() && classes.erase(word) > 0)
      found.emplace_back(word);
  }
  if (classes.empty()) return {};
  const bool signs = classes.contains("+"), others = are_other_numbers(classes);
  std::erase_if(found, [&](const std::string& word) { return word == kDash ? signs : others; });
  return found;
}

std::vector<std::string> left_out_labels(std::span<const std::string> labels,
                                         std::span<const std::string> known, std::int64_t classes,
                                         const std::string& where) {
  std::vector<std::string> none = words_for_no_label(labels, known);
  if (none.empty()) return none;
  const std::set<std::string> all(labels.begin(), labels.end());
  const std::int64_t with = std::ssize(all), without = with - std::ssize(none);
  if (classes == with) return {};
  const auto is_none = [&](const std::string& label) {
    return std::ranges::find(none, label) != none.end();
  };
  const bool others_are_known = std::ranges::all_of(all, [&](const std::string& label) {
    return is_none(label) || std::ranges::find(known, label) != known.end();
  });
  const std::int64_t rows = std::ssize(labels), unclear = std::ranges::count_if(labels, is_none);
  if (classes != without && !others_are_known && rows >= kRare && unclear * kRare > rows)
    fail(Fault::Data, where, ": ", unclear, " of ", counted(rows, "row"), " have the label ",
         label_names_text(none), ", which is a class, or means that a row has no label; give ",
         "--classes ", with, " to learn it as a class, or --classes ", without,
         " to skip these rows");
  return none;
}

std::vector<std::string> words_for_no_label(std::span<const std::string> known) {
  std::vector<std::string> out(std::begin(kNoLabel), std::end(kNoLabel));
  out.emplace_back();
  std::erase_if(
      out, [&](const std::string& word) { return std::ranges::find(known, word) != known.end(); });
  return out;
}

void require_classes(std::span<const std::string> names, std::int64_t count, const char* noun,
                     std::int64_t classes, const std::string& where) {
  const bool numbers = std::ranges::all_of(
      names, [](const std::string& name) { return finite_number(name).has_value(); });
  const auto fraction = std::ranges::find_if(
      names, [](const std::string& name) { return !is_whole(finite_number(name).value_or(0)); });
  if (numbers && fraction != names.end())
    fail(Fault::Data, where, " has scores, like ", *fraction, ", not labels: each of ",
         std::ssize(names),
         " numbers would be its own class; give --task regression to learn scores, or a column of ",
         "labels with label-column, or, if the numbers are class names, write them as words, like ",
         "class-", *fraction);
  if (classes > 1 || count < kFewRows) return;
  if (names.size() == 1)
    fail(
        Fault::Data, where, " has only one label, ", label_names_text(names), ", in all of its ",
        counted(count, noun), ", so there is nothing to classify; give ", noun,
        "s of other labels too, another column with label-column, or --classes 2 if others follow");
  if (2 * std::ssize(names) > count)
    fail(Fault::Data, where, " has ", counted(std::ssize(names), "label"), " in ",
         counted(count, noun), ", ", label_names_text(names.first(3)),
         ", ..., which look like names of each ", noun, ", not like classes; give the column ",
         "of labels with label-column, or, if these are classes, --classes ", std::ssize(names));
}

}  // namespace tessera
