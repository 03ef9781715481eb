#include "tessera/data/row_labels.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/unicode.h"
#include "tessera/base/utf8.h"
#include "tessera/files/table_file.h"

namespace tessera {

namespace {

/// 10 of "10" and "10.0".
std::optional<std::int64_t> whole_number(std::string_view name) {
  std::int64_t out = 0;
  if (name.ends_with(".0")) name.remove_suffix(2);
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), out);
  if (failure != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return out;
}

/// In small letters; bytes that are not UTF-8 as they are.
std::string in_small_letters(std::string_view name) {
  std::string out;
  for (std::size_t at = 0; at < name.size();) {
    const CodePoint c = code_point_at(name, at);
    if (c.size == 0) {
      out += name[at++];
      continue;
    }
    for (const char32_t small : lower_case(c.value)) append_utf8(out, small);
    at += static_cast<std::size_t>(c.size);
  }
  return out;
}

}  // namespace

std::vector<std::int32_t> label_numbers(std::span<const RowLabel> labels) {
  std::vector<std::int32_t> out;
  for (const RowLabel& label : labels) out.push_back(label.number());
  return out;
}

std::string notice_of_unlabelled(std::span<const RowLabel> labels) {
  const std::int64_t none = std::ranges::count_if(labels, &RowLabel::none),
                     all = std::ssize(labels);
  if (none == 0 || none == all) return "";
  return text(none, " of ", counted(all, "row"), none == 1 ? " has" : " have", " no label, and ",
              none == 1 ? "is" : "are", " not scored");
}

std::vector<std::string> sorted_label_names(std::span<const std::string> labels) {
  const std::set<std::string> all(labels.begin(), labels.end());
  std::vector<std::string> out(all.begin(), all.end());
  const bool numbers = std::ranges::all_of(
      out, [](const std::string& name) { return whole_number(name).has_value(); });
  if (numbers)
    std::ranges::stable_sort(out, {}, [](const std::string& name) { return *whole_number(name); });
  return out;
}

ChosenLabels chosen_label_names(std::span<const std::string> labels,
                                std::span<const std::string> known, bool keeps) {
  std::vector<std::string> sorted = sorted_label_names(labels);
  const LabelNumbers numbers(known);
  const bool all =
      std::ranges::all_of(sorted, [&](const std::string& name) { return numbers.of(name) >= 0; });
  if (keeps || all) return {{known.begin(), known.end()}, true};
  return {std::move(sorted), false};
}

LabelNumbers::LabelNumbers(std::span<const std::string> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    exact_.emplace(names[i], number);
    const auto [at, is_new] = folded_.emplace(in_small_letters(names[i]), number);
    if (!is_new) at->second = -1;
  }
}

std::int32_t LabelNumbers::of(std::string_view name) const {
  if (const auto found = exact_.find(name); found != exact_.end()) return found->second;
  const auto found = folded_.find(in_small_letters(name));
  return found == folded_.end() ? -1 : found->second;
}

std::string label_names_json(std::span<const std::string> names) {
  return nlohmann::json(std::vector<std::string>(names.begin(), names.end())).dump();
}

std::vector<std::string> parse_label_names(std::string_view json, const std::string& where) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> out;
  bool good = parsed.is_array();
  for (std::size_t i = 0; good && i < parsed.size(); ++i) {
    good = parsed[i].is_string();
    if (good) out.push_back(parsed[i].get<std::string>());
  }
  if (!good || std::set(out.begin(), out.end()).size() != out.size())
    fail(Fault::Checkpoint, where,
         ": its labels are not a list of different texts; restore it from ",
         "a copy or use another checkpoint");
  return out;
}

bool are_unnamed_labels(std::span<const std::string> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != text("LABEL_", i)) return false;
  }
  return true;
}

std::string label_names_text(std::span<const std::string> names) {
  return column_names_text(names);
}

}  // namespace tessera
