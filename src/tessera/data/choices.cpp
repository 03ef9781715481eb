#include "tessera/data/choices.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/deep_json.h"
#include "tessera/files/table_file.h"

namespace tessera {

namespace {

using nlohmann::json;

constexpr const char *kText = "text", *kLabel = "label";

[[noreturn]] void no_choices(std::string_view cell, const std::string& where) {
  const std::string shown(cell);
  fail(Fault::Data, where, " has ", column_names_text({&shown, 1}), " where choices belong; give ",
       "a JSON list of texts, {\"text\": [...], \"label\": [...]}, or, of choices in columns of ",
       "their own, the names of these with commas between");
}

bool is_cell(const json& value) { return value.is_string() || value.is_number(); }
std::string cell_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Texts of a list; nothing: it is none.
std::optional<std::vector<std::string>> cells_of(const json& list) {
  if (!list.is_array() || !std::ranges::all_of(list, is_cell)) return std::nullopt;
  std::vector<std::string> out;
  for (const json& value : list) out.push_back(cell_of(value));
  return out;
}

/// Of {"label": [...], "text": [...]}.
std::optional<RowChoices> of_two_lists(const json& object) {
  if (!object.contains(kText)) return std::nullopt;
  auto texts = cells_of(object[kText]);
  if (!texts) return std::nullopt;
  RowChoices out{std::move(*texts)};
  if (!object.contains(kLabel)) return out;
  auto names = cells_of(object[kLabel]);
  if (!names || names->size() != out.texts.size()) return std::nullopt;
  out.names = std::move(*names);
  return out;
}

/// Of a list of {"label": "A", "text": "..."}.
std::optional<RowChoices> of_objects(const json& list) {
  RowChoices out;
  for (const json& one : list) {
    if (!one.is_object() || !one.contains(kText) || !is_cell(one[kText])) return std::nullopt;
    out.texts.push_back(cell_of(one[kText]));
    if (!one.contains(kLabel)) continue;
    if (!is_cell(one[kLabel])) return std::nullopt;
    out.names.push_back(cell_of(one[kLabel]));
  }
  const bool all = out.names.empty() || out.names.size() == out.texts.size();
  return all ? std::optional(std::move(out)) : std::nullopt;
}

/// Of "2", "2.0" and "c": 2.
std::optional<std::int64_t> place_of(std::string_view label) {
  if (label.size() == 1 && std::isalpha(static_cast<unsigned char>(label[0])) != 0)
    return std::toupper(static_cast<unsigned char>(label[0])) - 'A';
  if (label.ends_with(".0")) label.remove_suffix(2);
  std::int64_t out = 0;
  const auto [end, failure] = std::from_chars(label.data(), label.data() + label.size(), out);
  if (failure != std::errc() || end != label.data() + label.size()) return std::nullopt;
  return out;
}

}  // namespace

RowChoices choices_of(std::string_view cell, const std::string& where) {
  const json given = parse_shallow<json>(cell);
  std::optional<RowChoices> out;
  if (given.is_object()) out = of_two_lists(given);
  if (given.is_array()) {
    if (auto texts = cells_of(given)) out = RowChoices{std::move(*texts)};
    if (!out) out = of_objects(given);
  }
  if (!out) no_choices(cell, where);
  return std::move(*out);
}

void require_choices(const RowChoices& choices, const std::string& where) {
  const std::size_t count = choices.texts.size();
  if (count < 2)
    fail(Fault::Data, where, " has ", counted(static_cast<std::int64_t>(count), "choice"),
         ", and there is nothing to choose; give two or more, or leave the row out");
  for (std::size_t i = 0; i < count; ++i) {
    if (trim(choices.texts[i]).empty())
      fail(Fault::Data, where, " has no text as choice ", i, ", from 0; give it one, or leave the ",
           "row out");
  }
}

std::optional<std::int32_t> right_choice(const RowChoices& choices, std::string_view label,
                                         const std::string& where) {
  label = trim(label);
  if (label.empty() || label == "-1" || label == "-1.0") return std::nullopt;
  const std::string shown(label);
  if (!choices.names.empty()) {
    const auto found = std::ranges::find(choices.names, label);
    if (found != choices.names.end())
      return static_cast<std::int32_t>(found - choices.names.begin());
    fail(Fault::Data, where, " has the label ", column_names_text({&shown, 1}),
         ", and its choices are called ", column_names_text(choices.names), "; give one of these");
  }
  const std::int64_t count = std::ssize(choices.texts);
  const std::optional<std::int64_t> place = place_of(label);
  if (place && *place >= 0 && *place < count) return static_cast<std::int32_t>(*place);
  fail(Fault::Data, where, " has the label ", column_names_text({&shown, 1}), ", and the row has ",
       count, " choices; give a number from 0 to ", count - 1,
       count > 26 ? "" : text(", or a letter from A to ", static_cast<char>('A' + count - 1)));
}

}  // namespace tessera
