#include "tessera/base/toml/parse_toml.h"

#include "tessera/base/error.h"
#include "tessera/base/utf8.h"

namespace tessera {

toml::table parse_toml(std::string_view bytes, const std::string& path) {
  const std::size_t bad = find_invalid_utf8(bytes);
  require(bad == std::string::npos, "'", path, "' is not UTF-8 at byte ", bad,
          "; save it as UTF-8");
  try {
    return toml::parse(bytes);
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    fail(Fault::Usage, path, ":", static_cast<std::int64_t>(at.line), ":",
         static_cast<std::int64_t>(at.column), ": ", error.description());
  }
}

}  // namespace tessera
