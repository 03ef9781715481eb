#pragma once
/// Variables of the environment.

#include <functional>
#include <string>

namespace tessera {

/// The value of a variable; nullptr: it is not set.
using EnvironmentVariables = std::function<const char*(const char* name)>;

/// That of this process.
EnvironmentVariables process_environment();

/// Without blanks around it; empty: it is not set.
std::string value_of(const EnvironmentVariables& environment, const char* name);

}  // namespace tessera
