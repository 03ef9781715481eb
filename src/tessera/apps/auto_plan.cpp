#include "tessera/apps/auto_plan.h"

#include <chrono>
#include <map>
#include <memory>

#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/memory_cap.h"
#include "tessera/device/device.h"
#include "tessera/launch/ranks.h"

namespace tessera {

RunConfig with_one_device(RunConfig config) {
  const ParallelConfig usual;
  ParallelConfig& parallel = config.parallel;
  parallel.devices = parallel.tensor = parallel.context = parallel.pipeline = 1;
  parallel.experts = 1;
  parallel.sequence = false;
  parallel.schedule = usual.schedule;
  parallel.virtual_stages = parallel.shard_size = parallel.shard_threshold = 0;
  parallel.layout.clear();
  config.data_parallel = 0;
  return config;
}

void take_devices(RunConfig& config, const RunConfig& from) {
  config.parallel = from.parallel;
  config.data_parallel = from.data_parallel;
  config.micro_batch_size = from.micro_batch_size;
  complete(config);
}

std::int64_t devices_to_plan(const RunConfig& config) {
  if (config.given.contains("devices")) return config.parallel.devices;
  const std::int64_t there = config.parallel.machine.devices();
  return there > 0 ? there : num_usable_cores();
}

void require_devices(const RunConfig& config) {
  const std::int64_t there = config.parallel.machine.devices(), asked = config.parallel.devices;
  const bool given = config.given.contains("devices");
  require(there == 0 || !given || asked <= there, "devices ", asked, " is more than the ", there,
          " of machine ", config.machine, "; give at most that, or another machine");
}

PlanQuestion question_of(const RunConfig& config, bool precision) {
  require_devices(config);
  PlanQuestion out;
  out.base = config;
  out.machine = config.parallel.machine;
  out.precision = precision;
  out.devices = devices_to_plan(config);
  out.cap = parse_memory_cap(config.memory_cap);
  if (!out.cap && out.machine.device.memory_bytes > 0) out.cap = out.machine.device.memory_bytes;
  return out;
}

Flag memory_margin_flag() {
  return {"memory-margin",
          {},
          "PERCENT",
          "with --auto: share of --memory-cap, or of a device's memory, left free [5]",
          "",
          false};
}

double take_memory_margin(ParsedFlags& parsed, bool automatic, Problems& problems) {
  double out = 5;
  if (parsed.find("memory-margin") == nullptr) return out;
  if (!automatic) problems.add("--memory-margin needs --auto; give it too");
  const std::string value = parsed.take_value("memory-margin");
  problems.gather([&] {
    read_number("--memory-margin", value, &out);
    require(0 <= out && out < 100, "--memory-margin is ", value,
            "; give a percentage from 0 to below 100");
  });
  return out;
}

OnProgress search_progress(Console& console) {
  using Clock = std::chrono::steady_clock;
  return [&console, last = Clock::now()](const SearchProgress& so_far) mutable {
    if (Clock::now() - last < std::chrono::seconds(10)) return;
    last = Clock::now();
    const std::string best =
        so_far.best == nullptr
            ? "none fits yet"
            : text("the best so far takes ", format("%.4g", so_far.best->seconds()), " s, ",
                   bytes_text(so_far.best->verdict.peak()));
    console.err << "planning" << (so_far.beside.empty() ? "" : " ") << so_far.beside << ": "
                << so_far.compared << " plans compared, " << so_far.waiting
                << " groups of plans left, none below " << format("%.4g", so_far.bound) << " s; "
                << best << "\n"
                << std::flush;
  };
}

PlanAnswer plan_for(const PlanQuestion& question) {
  std::map<std::int64_t, std::unique_ptr<Device>> known;  // by how many share the cores
  return plan_for(question, [&](const RunConfig& config) -> Device& {
    std::unique_ptr<Device>& out = known[config.parallel.devices];
    if (!out) out = planned_device(config);
    return *out;
  });
}

}  // namespace tessera
