#pragma once
/// Values with a name: options that a plugin is given, facts that it tells of itself and of devices.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tessera::pjrt {

using Value = std::variant<std::string, bool, std::int64_t, float, std::vector<std::int64_t>>;

struct NamedValue {
  std::string name;
  Value value;
  friend bool operator==(const NamedValue&, const NamedValue&) = default;
};
using NamedValues = std::vector<NamedValue>;

/// "cpu_device_count = 2", "topology = \"1x2x8\"", "visible_devices = [0, 1]"; safe for a terminal.
std::string to_text(const NamedValue& value);

/// Null where there is none of that name.
const Value* find(const NamedValues& values, std::string_view name);

}  // namespace tessera::pjrt
