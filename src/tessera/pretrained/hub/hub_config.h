#pragma once
/// The config.json of a Hugging Face model, read by what a family needs of it.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

/// Keys keep their order: what is written again looks as it was.
using HubJson = nlohmann::ordered_json;

/// What a file of a Hugging Face folder says; discarded if it is no JSON. Errors: `fault`: nested
/// deeper than any such file, which functions that write and show it could not follow; more keys
/// than any such file, each of which is compared with all before it.
HubJson parse_hub_json(std::string_view json, const std::string& path, Fault fault);

/// The same of a file that may have any number of keys, in any order.
nlohmann::json parse_hub_map(std::string_view json, const std::string& path, Fault fault);

/// "null", "4" in quotes, [1,2]: a value as JSON has it, at most 60 characters of it.
std::string shown(const HubJson& value);

/// Errors of all members: Fault::Data, naming the file, the key and its value.
class HubConfig {
 public:
  /// `path` is for messages. Errors: no JSON object; a pointer of Git LFS in place of one.
  HubConfig(std::string_view json, std::string path);

  const std::string& path() const { return path_; }
  const HubJson& json() const { return json_; }
  /// It is there and not null.
  bool has(std::string_view key) const;
  /// nullptr: it is not there.
  const HubJson* find(std::string_view key) const;

  // The value of a key, which is there.
  std::int64_t whole(std::string_view key, std::int64_t least, std::int64_t most) const;
  double number(std::string_view key, double least, double most) const;
  bool truth(std::string_view key) const;
  std::string word(std::string_view key) const;

  /// The id of a token; `standard` where it is not there.
  std::int32_t id(std::string_view key, std::int32_t standard) const;
  /// Refuses the value of the key, or that there is none.
  [[noreturn]] void refuse(std::string_view key, std::string_view what_to_do) const;

 private:
  HubJson json_;
  std::string path_;
};

}  // namespace tessera
