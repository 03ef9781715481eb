#pragma once
/// The config.json of a Hugging Face model, read by what a family needs of it.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

/// Keys keep their order: what is written again looks as it was.
using HubJson = nlohmann::ordered_json;

/// What a file of a Hugging Face folder says; discarded if it is no JSON. Errors: `fault`: nested
/// deeper than any such file, which functions that write and show it could not follow.
HubJson parse_hub_json(std::string_view json, const std::string& path, Fault fault);

/// Errors of all members: Fault::Data, naming the file, the key and its value.
class HubConfig {
 public:
  /// `path` is for messages. Errors: no JSON object.
  HubConfig(std::string_view json, std::string path);

  const std::string& path() const { return path_; }
  const HubJson& json() const { return json_; }
  bool has(std::string_view key) const;

  /// A whole number from 1 on; `standard` where the key is missing or null.
  std::int64_t count(std::string_view key, std::int64_t standard) const;
  /// A whole number from 0 on: an id.
  std::int64_t id(std::string_view key, std::int64_t standard) const;
  double number(std::string_view key, double standard) const;
  bool truth(std::string_view key, bool standard) const;
  std::string word(std::string_view key, std::string_view standard) const;

  /// The word is one of these, which mean the same here.
  void require_word(std::string_view key, std::string_view standard,
                    std::initializer_list<std::string_view> known) const;
  void require_truth(std::string_view key, bool wanted, std::string_view otherwise) const;
  void require_count(std::string_view key, std::int64_t standard, std::int64_t wanted,
                     std::string_view otherwise) const;
  /// One rate for several keys. Where they differ the first counts, and `notices` say so.
  double same_rate(std::initializer_list<std::string_view> keys, double standard) const;
  /// The rate of `key`, as ModelConfig::attention_dropout has it: -1 where it is `dropout`.
  double rate_beside(std::string_view key, double standard, double dropout) const;

  const std::vector<std::string>& notices() const { return notices_; }

 private:
  std::int64_t whole(std::string_view key, std::int64_t standard, std::int64_t least,
                     std::int64_t most) const;
  const HubJson* find(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view otherwise) const;

  HubJson json_;
  std::string path_;
  mutable std::vector<std::string> notices_;
};

}  // namespace tessera
