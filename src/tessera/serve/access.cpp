#include <algorithm>
#include <string_view>

#include "tessera/base/text.h"
#include "tessera/serve/api_error.h"
#include "tessera/serve/completions_api.h"

namespace tessera {

namespace {

/// Takes the same time wherever they differ; their lengths are no secret.
bool same_words(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char different = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    different = static_cast<unsigned char>(different | (a[i] ^ b[i]));
  return different == 0;
}

/// The word behind "Bearer ", however that is spelled; empty: none.
std::string_view bearer(const std::string* field) {
  constexpr std::string_view kScheme = "bearer ";
  if (field == nullptr || field->size() < kScheme.size()) return {};
  const std::string_view all = *field;
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  return std::ranges::equal(all.substr(0, kScheme.size()), kScheme, same)
             ? trim(all.substr(kScheme.size()))
             : std::string_view();
}

/// "localhost:8000", "[::1]:8000": without the port.
std::string host_of(std::string_view address) {
  if (address.starts_with('[')) return std::string(address.substr(1, address.find(']') - 1));
  return std::string(address.substr(0, address.find(':')));
}

bool is_this_host(const std::string& host, const Access& access) {
  return host == access.host || process::means_this_host(host);
}

}  // namespace

void require_access(const HttpHead& head, const Access& access) {
  if (!access.token.empty()) {
    if (same_words(bearer(head.find("authorization")), access.token)) return;
    ApiError error(401, "the token is missing or wrong: give Authorization: Bearer TOKEN", {},
                   "invalid_api_key");
    error.fields = {{"WWW-Authenticate", "Bearer"}};
    throw error;
  }
  const std::string* const host = head.find("host");
  if (host != nullptr && !is_this_host(host_of(*host), access))
    throw ApiError(403, text("this server has no token, and answers only requests to this host, ",
                             "not to ", dump(nlohmann::ordered_json(*host))));
  const std::string* const origin = head.find("origin");
  if (origin == nullptr) return;
  const std::size_t name = origin->find("://");
  if (name == std::string::npos || !is_this_host(host_of(origin->substr(name + 3)), access))
    throw ApiError(403, text("this server has no token, and answers no pages of other hosts, as ",
                             dump(nlohmann::ordered_json(*origin))));
}

}  // namespace tessera
