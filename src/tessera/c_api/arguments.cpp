#include "tessera/c_api/arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

namespace tessera {

namespace {

using OrderedJson = nlohmann::ordered_json;

std::string shown(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// A number, a switch or a word, as it is written on a command line.
std::string word_of(const std::string& flag, const OrderedJson& value) {
  require(value.is_string() || value.is_number() || value.is_boolean(), flag, " is ", shown(value),
          "; give a number, a text, true or false, or a list of these");
  return value.is_string() ? value.get<std::string>() : shown(value);
}

void add_flag(Arguments& out, std::string name, const OrderedJson& value) {
  std::ranges::replace(name, '_', '-');
  const std::string flag = "--" + name;
  if (value.is_null()) return;
  if (!value.is_array()) {
    out.push_back(flag + "=" + word_of(flag, value));
    return;
  }
  require(!value.empty(), flag, " is an empty list; give values, or leave it out");
  for (const OrderedJson& each : value) {
    const std::string word = word_of(flag, each);
    const bool first = &each == &value.front();
    // The first is written with =, so it may begin with dashes; another would be a flag.
    require(first || !word.starts_with("--"), flag, " has a value '", word,
            "', which begins like a flag; write ./", word, " for a file of that name");
    out.push_back(first ? flag + "=" + word : word);
  }
}

}  // namespace

Arguments arguments_of(std::string_view json) {
  const OrderedJson all = OrderedJson::parse(json, nullptr, /*allow_exceptions=*/false);
  require(all.is_object() || all.is_array(),
          "the flags are no JSON: give an object as {\"steps\": 8} or an array of arguments");
  Arguments out;
  if (all.is_array()) {
    for (const OrderedJson& each : all) out.push_back(word_of("an argument", each));
    return out;
  }
  Arguments words;
  for (const auto& [name, value] : all.items()) {
    if (!name.empty()) {
      add_flag(out, name, value);
    } else if (!value.is_null()) {
      words = {"--"};
      if (!value.is_array()) words.push_back(word_of("PATH", value));
      for (const OrderedJson& each : value.is_array() ? value : OrderedJson::array())
        words.push_back(word_of("PATH", each));
    }
  }
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

}  // namespace tessera
