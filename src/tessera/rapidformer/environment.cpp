#include "tessera/rapidformer/environment.h"

#include <cstdlib>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/train/fields.h"

namespace tessera {

namespace {

std::string value_of(const Variables& variables, const char* name) {
  const char* const value = variables(name);
  return value == nullptr ? "" : std::string(trim(value));
}

}  // namespace

Variables environment_variables() {
  return [](const char* name) { return std::getenv(name); };
}

AskedDevices asked_devices(const Variables& variables) {
  AskedDevices out;
  const std::string visible = value_of(variables, "CUDA_VISIBLE_DEVICES");
  std::int64_t count = 0;
  for (const std::string& entry : split(visible, ',')) {
    if (trim(entry).empty() || trim(entry) == "-1") break;  // as CUDA reads it
    ++count;
  }
  if (count > 0) {
    out.on_host = count;
    out.who = text("CUDA_VISIBLE_DEVICES ", visible);
  }
  const std::string hosts = value_of(variables, "NNODES");
  if (!hosts.empty() && !value_of(variables, "NODE_RANK").empty()) {
    read_number("NNODES", hosts, &out.hosts);
    require(out.hosts > 0, "NNODES is ", out.hosts, "; it is the number of hosts, at least 1");
    if (out.hosts > 1) out.who += text(out.who.empty() ? "" : ", ", "NNODES ", out.hosts);
  }
  return out;
}

}  // namespace tessera
