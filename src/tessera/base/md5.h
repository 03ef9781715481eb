#pragma once
/// MD5, for names of files that other programs give by it; it protects nothing.

#include <string>
#include <string_view>

namespace tessera {

/// 32 lower-case hexadecimal digits. Source: RFC 1321.
std::string md5_text(std::string_view bytes);

}  // namespace tessera
