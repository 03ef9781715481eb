#include "tessera/rapidformer/asked_devices.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"

namespace tessera {

AskedDevices asked_devices(const EnvironmentVariables& environment) {
  AskedDevices out;
  const std::string visible = value_of(environment, "CUDA_VISIBLE_DEVICES");
  std::int64_t count = 0;
  for (const std::string& entry : split(visible, ',')) {
    if (trim(entry).empty() || trim(entry) == "-1") break;  // as CUDA reads it
    ++count;
  }
  if (count > 0) {
    out.on_host = count;
    out.who = text("CUDA_VISIBLE_DEVICES ", visible);
  }
  const std::string hosts = value_of(environment, "NNODES");
  if (!hosts.empty() && !value_of(environment, "NODE_RANK").empty()) {
    read_number("NNODES", hosts, &out.hosts);
    require(out.hosts > 0, "NNODES is ", out.hosts, "; it is the number of hosts, at least 1");
    if (out.hosts > 1) out.who += text(out.who.empty() ? "" : ", ", "NNODES ", out.hosts);
  }
  return out;
}

}  // namespace tessera
