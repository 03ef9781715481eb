#include "tessera/tokenizers/json_part.h"

#include <limits>

#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"

namespace tessera::tokenizer {

namespace {

constexpr int kDeepest = 20;  // parts within parts: far below what a stack holds
constexpr std::size_t kMostShown = 40;

}  // namespace

const nlohmann::json* JsonPart::find(std::string_view key) const {
  if (!json_->is_object()) return nullptr;
  const auto found = json_->find(std::string(key));
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

std::string JsonPart::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

std::string JsonPart::shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return "\"" + replaced_utf8(text.substr(0, kMostShown)) + "\"";
  }
  return value.dump();
}

JsonPart JsonPart::part(std::string_view key) const {
  const nlohmann::json* const found = find(key);
  if (found == nullptr) bad("it has no \"", key, "\"; restore the file");
  if (depth_ >= kDeepest) bad("parts are nested deeper than ", kDeepest, "; restore the file");
  return {*found, file_, path_of(key), depth_ + 1};
}

std::size_t JsonPart::count(std::string_view key) const {
  const JsonPart list = part(key);
  if (!list.json().is_array())
    list.bad("it is ", shown(list.json()), " where a list is expected; restore the file");
  return list.json().size();
}

JsonPart JsonPart::item(std::string_view key, std::size_t i) const {
  const JsonPart list = part(key);
  return {list.json()[i], file_, tessera::text(list.path_, "[", i, "]"), depth_ + 1};
}

JsonPart JsonPart::at(std::size_t i) const {
  return {(*json_)[i], file_, tessera::text(path_, "[", i, "]"), depth_ + 1};
}

std::string JsonPart::text(std::string_view key, std::optional<std::string> missing) const {
  const nlohmann::json* const found = find(key);
  if (found == nullptr && missing) return *missing;
  if (found == nullptr) bad("it has no \"", key, "\"; restore the file");
  if (!found->is_string())
    bad("\"", key, "\" is ", shown(*found), " where a text is expected; restore the file");
  return found->get<std::string>();
}

bool JsonPart::flag(std::string_view key, std::optional<bool> missing) const {
  const nlohmann::json* const found = find(key);
  if (found == nullptr && missing) return *missing;
  if (found == nullptr) bad("it has no \"", key, "\"; restore the file");
  if (!found->is_boolean())
    bad("\"", key, "\" is ", shown(*found), " where true or false is expected; restore the file");
  return found->get<bool>();
}

std::int32_t JsonPart::number(std::string_view key, std::optional<std::int32_t> missing) const {
  const nlohmann::json* const found = find(key);
  if (found == nullptr && missing) return *missing;
  if (found == nullptr) bad("it has no \"", key, "\"; restore the file");
  return id_of_json(*found, *this, tessera::text("\"", key, "\""));
}

double JsonPart::real(std::string_view key, std::optional<double> missing) const {
  const nlohmann::json* const found = find(key);
  if (found == nullptr && missing) return *missing;
  if (found == nullptr || !found->is_number())
    bad("\"", key, "\" is ", found == nullptr ? "missing" : shown(*found),
        "; a number is expected; restore the file");
  return found->get<double>();
}

char32_t JsonPart::character(std::string_view key, std::optional<char32_t> missing) const {
  if (missing && !has(key)) return *missing;
  const std::string utf8 = text(key);
  const CodePoint c = utf8.empty() ? CodePoint{} : code_point_at(utf8, 0);
  if (c.size == 0 || static_cast<std::size_t>(c.size) != utf8.size())
    bad("\"", key, "\" is \"", replaced_utf8(utf8.substr(0, kMostShown)),
        "\" where one character is expected; restore the file");
  return c.value;
}

std::int32_t id_of_json(const nlohmann::json& value, const JsonPart& of, std::string_view what) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max() - 1;
  const bool whole =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
  if (!whole || value.get<std::uint64_t>() > kMost)
    of.bad(what, " is ", JsonPart::shown(value), " where a whole number from 0 to ", kMost,
           " is expected; restore the file");
  return static_cast<std::int32_t>(value.get<std::uint64_t>());
}

}  // namespace tessera::tokenizer
