/// Fields by their names and aliases, and the nearest of them.

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/hints.h"

namespace tessera {

std::vector<std::string> field_names(const Field& field) {
  std::vector<std::string> out = {std::string(field.name)};
  for (const std::string& alias : split(field.aliases, ' ')) {
    if (!alias.empty()) out.push_back(alias[0] == '!' ? alias.substr(1) : alias);
  }
  if (!is_switch(field)) return out;
  out.push_back("no-" + std::string(field.name));
  for (const std::string& alias : split(field.aliases, ' ')) {
    if (!alias.empty() && alias[0] != '!') out.push_back("no-" + alias);
  }
  return out;
}

FoundField find_field(std::string_view key) {
  for (const Field& field : fields()) {
    if (field.name == key) return {&field, false};
    if (starts_with(key, "no-") && key.substr(3) == field.name && is_switch(field))
      return {&field, true};
    for (std::string_view rest = field.aliases; !rest.empty();) {
      const std::string_view alias = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(alias.size() + 1, rest.size()));
      if (alias == key) return {&field, false};
      if (starts_with(key, "no-") && key.substr(3) == alias && is_switch(field))
        return {&field, true};
      if (alias[0] == '!' && alias.substr(1) == key) return {&field, true};
    }
  }
  return {};
}

std::string near_fields(std::string_view key, std::string_view prefix) {
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    for (const std::string& name : field_names(field)) names.push_back(name);
  }
  const std::string given = hint(key, names, prefix);
  return given.empty() ? "" : "; " + given;
}

}  // namespace tessera
