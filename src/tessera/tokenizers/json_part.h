#pragma once
/// A part of a JSON file from outside, with its place for messages.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera::tokenizer {

/// Refers to the JSON, which must outlive it. All errors are Fault::Data and begin with the place.
class JsonPart {
 public:
  /// `file` names the file, `path` the part within: "normalizer.normalizers[2]".
  JsonPart(const nlohmann::json& json, std::string file, std::string path = "", int depth = 0)
      : json_(&json), file_(std::move(file)), path_(std::move(path)), depth_(depth) {}

  const nlohmann::json& json() const { return *json_; }
  bool is_object() const { return json_->is_object(); }
  /// A key that is there and not null.
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// Errors: there is none; parts within more than 20 parts.
  JsonPart part(std::string_view key) const;
  /// Items of the list at `key`.
  std::size_t count(std::string_view key) const;
  JsonPart item(std::string_view key, std::size_t i) const;
  /// Items of this part, a list.
  JsonPart at(std::size_t i) const;

  std::string text(std::string_view key, std::optional<std::string> missing = std::nullopt) const;
  bool flag(std::string_view key, std::optional<bool> missing = std::nullopt) const;
  /// From 0 to 2^31 - 2, as ids are.
  std::int32_t number(std::string_view key,
                      std::optional<std::int32_t> missing = std::nullopt) const;
  double real(std::string_view key, std::optional<double> missing = std::nullopt) const;
  /// The one character at `key`.
  char32_t character(std::string_view key, std::optional<char32_t> missing = std::nullopt) const;

  template <typename... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail(Fault::Data, "tokenizer file '", file_, "'", path_.empty() ? "" : ", ", path_, ": ",
         parts...);
  }
  /// The value as a message shows it: scalars alone, cut short.
  static std::string shown(const nlohmann::json& value);

 private:
  const nlohmann::json* find(std::string_view key) const;
  std::string path_of(std::string_view key) const;

  const nlohmann::json* json_;
  std::string file_, path_;
  int depth_;
};

std::int32_t id_of_json(const nlohmann::json& value, const JsonPart& of, std::string_view what);

/// What a table of a slot says of one type.
template <typename Made>
struct Maker {
  std::string_view type;
  Made (*make)(const JsonPart& part);
};

/// Makes what the part's "type" says, by the table of the slot.
template <typename Made>
Made make_by_type(std::span<const Maker<Made>> makers, const JsonPart& part,
                  std::string_view slot) {
  const std::string type = part.text("type");
  std::string known;
  for (const Maker<Made>& maker : makers) {
    if (maker.type == type) return maker.make(part);
    known += (known.empty() ? "" : ", ") + std::string(maker.type);
  }
  part.bad("type '", type.substr(0, 60), "' is not a supported ", slot, "; supported are ", known,
           "; convert the tokenizer to one of these");
}

}  // namespace tessera::tokenizer
