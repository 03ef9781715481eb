#include "tessera/launch/environment.h"

#include <cstdlib>

#include "tessera/base/text.h"

namespace tessera {

EnvironmentVariables process_environment() {
  return [](const char* name) { return std::getenv(name); };
}

std::string user_cache_folder(const EnvironmentVariables& environment) {
  if (const std::string cache = value_of(environment, "XDG_CACHE_HOME"); !cache.empty())
    return cache + "/tessera";
  const std::string home = value_of(environment, "HOME");
  return home.empty() ? "" : home + "/.cache/tessera";
}

std::string value_of(const EnvironmentVariables& environment, const char* name) {
  const char* const value = environment(name);
  return value == nullptr ? "" : std::string(trim(value));
}

}  // namespace tessera
