#include "tessera/comm/process/variables.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>

#include "tessera/base/error.h"

namespace tessera::process {

bool Variables::has(const char* name) const {
  const char* value = look_up_(name);
  return value != nullptr && *value != '\0';
}

std::string Variables::text_of(const char* name) const { return has(name) ? look_up_(name) : ""; }

std::optional<int> Variables::number(const char* name, int least, int most) const {
  if (!has(name)) return std::nullopt;
  const std::string value(trim(text_of(name)));
  int out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  require(error == std::errc() && end == value.data() + value.size() && out >= least && out <= most,
          "the environment variable ", shown(name), ", and must be a whole number from ", least,
          " to ", most);
  return out;
}

int Variables::about(const char* name) const {
  const long value = std::strtol(text_of(name).c_str(), nullptr, 10);
  return static_cast<int>(std::clamp<long>(value, INT_MIN, INT_MAX));
}

int Variables::remainder(const char* name, int divisor) const {
  const unsigned long long value = std::strtoull(text_of(name).c_str(), nullptr, 10);
  return static_cast<int>(value % static_cast<unsigned long long>(divisor));
}

std::string Variables::shown(const char* name) const {
  return has(name) ? text(name, " is '", text_of(name), "'") : text(name, " is not set");
}

std::string first_host(const std::string& list) {
  const std::string all(trim(list));
  const std::size_t open = all.find('['), comma = all.find(',');
  if (open == std::string::npos || comma < open) return all.substr(0, comma);
  const std::size_t end = all.find(']', open);
  require(end != std::string::npos, "the node list '", all, "' has a [ without a ]");
  const std::string inside = all.substr(open + 1, end - open - 1);
  const std::string first = inside.substr(0, inside.find_first_of(",-"));
  // What follows the brackets belongs to every name, up to the next comma: "rack[1-2]node[1-4]".
  std::string rest = all.substr(end + 1);
  const std::size_t next = rest.find_first_of(",[");
  if (next != std::string::npos && rest[next] == '[')
    return first_host(all.substr(0, open) + first + rest);
  return all.substr(0, open) + first + rest.substr(0, next);
}

}  // namespace tessera::process
