#pragma once
/// What a request of HTTP/1.0 or 1.1 begins with.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

struct HttpHead {
  std::string method, path;  // "POST", "/v1/completions": without what follows a ?
  int minor = 1;             // of HTTP/1.1
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case

  /// nullptr: there is none.
  const std::string* find(std::string_view name) const;
};

/// Of all lines, the empty one at the end included. Errors: ApiError 400: no such head, a byte that
/// may not be there, a field twice that may be there once; 505: another HTTP.
HttpHead parse_http_head(std::string_view bytes);

/// How many bytes follow the head. Errors: ApiError 400: no number; 411: a length that is not told
/// before; 413: more than `most`.
std::size_t body_bytes(const HttpHead& head, std::size_t most);

}  // namespace tessera
