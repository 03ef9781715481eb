#pragma once
/// Variables of the environment.

#include <functional>
#include <string>

namespace tessera {

/// The value of a variable; nullptr: it is not set.
using EnvironmentVariables = std::function<const char*(const char* name)>;

/// That of this process.
EnvironmentVariables process_environment();

/// Where programs keep what they can make again: $XDG_CACHE_HOME/tessera, or ~/.cache/tessera.
/// Empty: nothing says where that is.
std::string user_cache_folder(const EnvironmentVariables& environment);

/// Without blanks around it; empty: it is not set.
std::string value_of(const EnvironmentVariables& environment, const char* name);

}  // namespace tessera
