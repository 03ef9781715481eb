#include "tessera/report/compiled_report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tessera/base/format.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

nlohmann::ordered_json json_of(const StageBytes& s) {
  return {{"argument_bytes", s.argument}, {"output_bytes", s.output},
          {"alias_bytes", s.alias},       {"temporary_bytes", s.temporary},
          {"beside_bytes", s.beside},     {"peak_bytes", s.peak()},
          {"host_bytes", s.host},         {"module", s.module},
          {"micro_batch", s.microbatch},  {"hides_latency", s.hides_latency}};
}

}  // namespace

std::string to_text(const CompiledBytes& c) {
  const StageBytes& most = c.most();
  return text(bytes_text(most.peak()),
              c.stages.size() == 1 ? "" : text(" of a device of stage ", c.fullest()),
              ", of which temporaries ", bytes_text(most.temporary),
              most.host == 0 ? "" : text(", and ", bytes_text(most.host), " on the host"), ", by ",
              c.compiler, " in ", format("%.1f s", c.seconds),
              std::ranges::all_of(c.stages, &StageBytes::hides_latency)
                  ? ""
                  : "; to take less memory, it does not compute while devices communicate");
}

nlohmann::ordered_json to_json(const CompiledBytes& c) {
  nlohmann::ordered_json out{{"compiler", c.compiler}, {"stage", c.fullest()}};
  out.update(json_of(c.most()));
  out["text_bytes"] = c.code;
  out["seconds"] = c.seconds;
  out["stages"] = nlohmann::ordered_json::array();
  for (const StageBytes& stage : c.stages) out["stages"].push_back(json_of(stage));
  return out;
}

}  // namespace tessera
