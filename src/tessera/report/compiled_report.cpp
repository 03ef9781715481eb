#include "tessera/report/compiled_report.h"

#include <nlohmann/json.hpp>

#include "tessera/base/format.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

std::string to_text(const CompiledBytes& c) {
  return text(bytes_text(c.peak()), ", of which temporaries ", bytes_text(c.temporary),
              c.host == 0 ? "" : text(", and ", bytes_text(c.host), " on the host"), ", by ",
              c.compiler, " in ", format("%.1f s", c.seconds));
}

nlohmann::ordered_json to_json(const CompiledBytes& c) {
  return {{"compiler", c.compiler}, {"argument_bytes", c.argument},   {"output_bytes", c.output},
          {"alias_bytes", c.alias}, {"temporary_bytes", c.temporary}, {"peak_bytes", c.peak()},
          {"host_bytes", c.host},   {"text_bytes", c.code},           {"seconds", c.seconds}};
}

}  // namespace tessera
