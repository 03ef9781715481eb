#pragma once
/// Text as TOML writes it.

#include <string>
#include <string_view>

namespace tessera {

/// A basic string with its quotes, which reads back as `value`: "C:\\new".
std::string toml_string(std::string_view value);

}  // namespace tessera
