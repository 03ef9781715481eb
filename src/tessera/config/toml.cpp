/// A run's configuration as the file that makes it again.

#include "tessera/base/text.h"
#include "tessera/base/toml_string.h"
#include "tessera/config/fields.h"

namespace tessera {

std::string toml_value(const Field& field, const RunConfig& config) {
  const Slot slot = read_slot(field, config);
  const std::string value = get_text(field, config);
  if (std::holds_alternative<std::int64_t*>(slot) || std::holds_alternative<bool*>(slot))
    return value;
  if (std::holds_alternative<double*>(slot)) {
    // TOML wants digits after the point or an exponent, else it is a whole number.
    return value.find_first_of(".e") == std::string::npos ? value + ".0" : value;
  }
  if (const auto* list = std::get_if<std::vector<std::string>*>(&slot)) {
    std::vector<std::string> entries;
    for (const std::string& entry : **list) entries.push_back(toml_string(entry));
    return "[" + join(entries) + "]";
  }
  return toml_string(value);
}

std::string to_toml(const RunConfig& config) {
  std::string out;
  for (const FieldGroup group : kFieldGroups) {
    out += text(out.empty() ? "" : "\n", "[", to_text(group), "]\n");
    for (const Field& field : fields()) {
      if (field.group == group) out += text(field.name, " = ", toml_value(field, config), "\n");
    }
  }
  return out;
}

}  // namespace tessera
