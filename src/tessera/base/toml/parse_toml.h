#pragma once
/// TOML as its library reads it, with our errors. In a folder of its own: headers that need other
/// libraries are not installed.

#include <toml++/toml.h>
#include <string>
#include <string_view>

namespace tessera {

/// `path` is only named in messages. Errors: Fault::Usage: it is not UTF-8; bad syntax, with line
/// and column; a key of more than 32 parts.
toml::table parse_toml(std::string_view bytes, const std::string& path);

}  // namespace tessera
