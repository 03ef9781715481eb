#include <algorithm>

#include "tessera/base/divisors.h"
#include "tessera/base/text.h"
#include "tessera/comm/launched.h"
#include "tessera/comm/processes.h"
#include "tessera/rapidformer/asked_run.h"

namespace tessera {

namespace {

/// --devices, else what the file or the environment says; processes that another launcher started
/// are counted by it.
void take_devices(AskedRun& run, const EnvironmentVariables& environment, std::string& who) {
  const std::optional<std::int64_t> given = run.flags.count("devices");
  const bool in_file = !given && run.given_elsewhere && run.asks("devices");
  const AskedDevices asked = asked_devices(environment);
  run.devices = in_file ? run.so_far().parallel.devices : given.value_or(asked.all());
  who = given ? "--devices" : in_file ? run.so_far().given["devices"] : asked.who;
  const bool counted = given || in_file || asked.hosts > 1;
  const Launched launched =
      launch_of(environment, {.devices = counted ? run.devices : 0, .mpi = has_mpi()});
  run.several_processes = launched.how != Launched::Alone;
  if (in_file) return;
  if (given) {
    run.devices_given = true;
  } else if (run.several_processes && asked.hosts == 1) {
    run.devices = std::max(launched.size, 1);
    who = launched.who;
  } else if (run.devices > 1) {
    run.flags.set("devices", {text(run.devices)}, "--devices");
    run.devices_given = true;
  }
}

/// The data parallel devices; 0 where the sizes do not fit, which is a problem then.
std::int64_t data_parallel_of(AskedRun& run, const std::string& who) {
  std::int64_t parts = 1;
  std::vector<std::string> written;
  for (const char* name :
       {"tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size"}) {
    const std::int64_t size = run.count(name).value_or(1);
    if (size < 1) return 0;  // the field says so
    parts *= size;
    if (size > 1)
      written.push_back(run.flags.find(name) == nullptr ? text(name, " ", size)
                                                        : run.flags.written(name));
  }
  if (run.devices % parts == 0) return run.devices / parts;
  const std::string devices = text(run.devices, run.devices == 1 ? " device" : " devices",
                                   who.empty() ? "" : text(" (", who, ")"));
  run.problems.add(text(join(written, " x "), " makes parts of ", parts, " devices, and there ",
                        run.devices == 1 ? "is " : "are ", devices,
                        parts > run.devices
                            ? text("; lower one of the sizes, or give --devices ", parts)
                            : text("; give --devices ", run.devices / parts * parts, " or ",
                                   (run.devices / parts + 1) * parts)));
  for (const char* field : {"devices", "data-parallel-size", "tensor-model-parallel-size",
                            "pipeline-model-parallel-size", "context-parallel-size"})
    run.problems.refuse(field);
  return 0;
}

/// Megatron-LM's rule: whole micro-batches on every device. Of a batch that is not told by a flag
/// the run says what is wrong with it.
void take_batch(AskedRun& run) {
  const std::optional<std::int64_t> micro = run.flags.count("micro-batch-size"),
                                    global = run.flags.count("global-batch-size");
  if (run.data_parallel < 1) return;  // a problem
  const std::optional<std::int64_t> given = run.count("global-batch-size");
  run.global_batch_size = given.value_or(run.so_far().global_batch_size);
  if (!micro || *micro < 1) return;
  const std::int64_t at_a_time = *micro * run.data_parallel;
  if (!given) {
    run.global_batch_size = at_a_time;
    run.flags.set("global-batch-size", {text(at_a_time)}, "--micro-batch-size");
    return;
  }
  if (!global || *global < 1 || *global % at_a_time == 0) return;
  const std::int64_t below = *global / at_a_time * at_a_time;
  const std::string batches = below == 0 ? text(at_a_time) : text(below, " or ", below + at_a_time);
  const std::string micros =
      *global % run.data_parallel == 0
          ? text(", or --micro-batch-size ", divisors(*global / run.data_parallel))
          : "";
  run.problems.add(text("--micro-batch-size ", *micro, " x ", run.data_parallel,
                        " data parallel devices is ", at_a_time,
                        ", which does not divide --global-batch-size ", *global,
                        "; give --global-batch-size ", batches, micros));
  run.problems.refuse("micro-batch-size");
  run.problems.refuse("global-batch-size");
}

void take_virtual_stages(AskedRun& run) {
  const std::optional<std::int64_t> each = run.flags.count("num-layers-per-virtual-pipeline-stage"),
                                    chunks =
                                        run.flags.count("num-virtual-stages-per-pipeline-rank");
  if (!each && !chunks) return;
  std::int64_t count = chunks.value_or(0);
  if (each) {
    const std::int64_t of_folder = run.pretrained ? run.pretrained->config().layers : 0,
                       layers = run.count("num-layers").value_or(of_folder),
                       stages = run.count("pipeline-model-parallel-size").value_or(1);
    if (*each < 1 || layers < 1 || layers % (stages * *each) != 0) {
      run.problems.add(
          text("--num-layers-per-virtual-pipeline-stage ", *each, " x ", stages,
               " pipeline stages does not divide --num-layers ", layers,
               "; give --virtual-pipeline-stages, the chunks per stage, which may be unequal"));
      return;
    }
    count = layers / (stages * *each);
  }
  run.flags.set(
      "virtual-pipeline-stages", {text(count)},
      each ? "--num-layers-per-virtual-pipeline-stage" : "--num-virtual-stages-per-pipeline-rank");
  if (!run.asks("pipeline-schedule"))
    run.flags.set("pipeline-schedule", {"interleaved"}, "--pipeline-schedule");
}

}  // namespace

void take_mesh_flags(AskedRun& run, const EnvironmentVariables& environment) {
  std::string who;
  take_devices(run, environment, who);
  const std::int64_t given = run.count("data-parallel-size").value_or(0);
  run.data_parallel = given > 0 ? given : data_parallel_of(run, who);
  take_batch(run);
  take_virtual_stages(run);
  if (const std::optional<double> minutes = run.flags.number("distributed-timeout-minutes")) {
    constexpr double kMinute = 60;
    run.flags.set("distributed-timeout", {text(static_cast<std::int64_t>(*minutes * kMinute))},
                  "--distributed-timeout-minutes");
  }
}

}  // namespace tessera
