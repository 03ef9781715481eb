#include "tessera/apps/environment.h"

#include <cstdlib>

#include "tessera/base/text.h"

namespace tessera {

EnvironmentVariables process_environment() {
  return [](const char* name) { return std::getenv(name); };
}

std::string value_of(const EnvironmentVariables& environment, const char* name) {
  const char* const value = environment(name);
  return value == nullptr ? "" : std::string(trim(value));
}

}  // namespace tessera
