#include "tessera/base/toml/parse_toml.h"

#include <algorithm>
#include <cctype>

#include "tessera/base/error.h"
#include "tessera/base/utf8.h"

namespace tessera {

namespace {

/// A key of many parts makes tables within tables, which the library reads and frees by recursion;
/// of lists and inline tables it has a limit of its own.
constexpr int kMostParts = 32;

/// Behind the string that begins at `at`.
std::size_t end_of_string(std::string_view bytes, std::size_t at) {
  const char quote = bytes[at];
  const std::string_view thrice = quote == '"' ? R"(""")" : "'''";
  const bool lines = bytes.substr(at).starts_with(thrice);
  const std::string_view end = lines ? thrice : thrice.substr(0, 1);
  for (at += end.size(); at < bytes.size(); ++at) {
    if (bytes.substr(at).starts_with(end)) return at + end.size();
    if (bytes[at] == '\n' && !lines) return at;
    if (bytes[at] == '\\' && quote == '"') ++at;
  }
  return bytes.size();
}

void require_few_parts(std::string_view bytes, const std::string& path) {
  int dots = 0;
  std::int64_t line = 1;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const char c = bytes[at];
    if (c == '"' || c == '\'') {
      const std::size_t end = end_of_string(bytes, at);
      line += std::count(&bytes[at], bytes.data() + end, '\n');
      at = end - 1;
    } else if (c == '#') {
      at = std::min(bytes.find('\n', at), bytes.size()) - 1;
    } else if (c == '.') {
      require(++dots < kMostParts, path, ":", line, ": a key has more than ", kMostParts,
              " parts separated by dots; no key has that many");
    } else if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
               std::string_view("-_ \t").find(c) == std::string_view::npos) {
      dots = 0;
      line += c == '\n' ? 1 : 0;
    }
  }
}

}  // namespace

toml::table parse_toml(std::string_view bytes, const std::string& path) {
  const std::size_t bad = find_invalid_utf8(bytes);
  require(bad == std::string::npos, "'", path, "' is not UTF-8 at byte ", bad,
          "; save it as UTF-8");
  require_few_parts(bytes, path);
  try {
    return toml::parse(bytes);
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    fail(Fault::Usage, path, ":", static_cast<std::int64_t>(at.line), ":",
         static_cast<std::int64_t>(at.column), ": ", error.description());
  }
}

}  // namespace tessera
