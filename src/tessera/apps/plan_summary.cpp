#include "tessera/apps/plan_summary.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/counted.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/config/memory_cap.h"
#include "tessera/plan/memory_parts.h"
#include "tessera/planner/explain.h"
#include "tessera/report/compiled_report.h"
#include "tessera/train/about_run.h"
#include "tessera/train/within_cap.h"

namespace tessera {

namespace {

std::string line_of(std::string_view name, const std::string& value) {
  return text(format("%-15s", std::string(name).c_str()), value, "\n");
}

/// "dp=2 tp=2, ZeRO-1, recompute elementwise": how the devices are used.
std::string use_text(const PlanReport& r, const ParallelConfig& p) {
  std::vector<std::string> out;
  if (!r.mesh.mesh.empty()) out.push_back(r.mesh.mesh);
  if (p.sequence) out.emplace_back("sequence parallel");
  const int zero = p.shard_parameters ? 3 : p.shard_gradients ? 2 : p.shard_optimizer ? 1 : 0;
  if (zero > 0) out.push_back(text("ZeRO-", zero));
  if (r.choice.recompute != Recompute::None)
    out.push_back(text("recompute ", to_text(r.choice.recompute),
                       r.choice.layers == "all" ? "" : text(" of layers ", r.choice.layers)));
  for (const std::string& word : offload_words(r.choice.offload))
    out.push_back(text("offload ", word));
  return join(out);
}

std::string batch_text(const PlanReport& r, const RunConfig& config) {
  const std::int64_t data = config.parallel.data();
  return text(counted(config.global_batch_size, "sample"), ", ", grouped(r.tokens_per_step),
              " tokens a step, in ", grouped(r.micro_batches),
              r.micro_batches == 1 ? " micro-batch of " : " micro-batches of ",
              counted(config.micro_batch_size, "sample"),
              data == 1 ? "" : text(" on each of ", data, " data parallel ranks"));
}

/// "0.25", "97", "1,451"
std::string percent_text(double share) {
  return share < 0.1 ? format("%.2g", 100 * share) : grouped(std::llround(100 * share));
}

/// "542 TFLOP"
std::string flop_text(double flop) {
  double shown = flop * 1e-9;
  std::size_t unit = 0;
  constexpr const char* kUnits[] = {"GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  for (; shown >= 999.5 && unit + 1 < std::size(kUnits); ++unit) shown *= 1e-3;
  return format("%.3g %s", shown, kUnits[unit]);
}

/// ", 23 % of the cap of 8.00 MiB"; empty: nothing limits it.
std::string capacity_text(const PlanReport& r, const RunConfig& config) {
  const std::optional<std::int64_t> cap = parse_memory_cap(config.memory_cap);
  const std::int64_t there = config.parallel.machine.device.memory_bytes;
  const bool of_machine = !config.machine.empty() && there > 0;
  if (!cap && !of_machine) return "";
  const std::int64_t limit = cap ? *cap : there;
  const double share = static_cast<double>(r.capped_bytes) / static_cast<double>(limit);
  const std::string counted_too =
      r.capped_bytes == r.peak_bytes
          ? ""
          : text("with what is offloaded ", bytes_text(r.capped_bytes), ", ");
  return text(", ", counted_too, percent_text(share), " % of the ", cap ? "cap of " : "",
              bytes_text(limit), cap ? "" : text(" of ", config.parallel.machine.name),
              share > 1 ? ": it does not fit; --auto looks for a plan that does" : "");
}

/// The parts of the fullest moment, the largest first; those below a hundredth are in details_text.
std::string parts_text(const MemoryUse& memory) {
  std::vector<MemoryPart> parts(std::begin(kMemoryParts), std::end(kMemoryParts));
  const auto bytes = [&](const MemoryPart& part) { return memory.*part.bytes; };
  std::int64_t all = 0;
  for (const MemoryPart& part : parts) all += bytes(part);
  std::erase_if(parts, [&](const MemoryPart& part) { return 100 * bytes(part) <= all; });
  std::ranges::stable_sort(parts, std::ranges::greater(), bytes);
  std::vector<std::string> out;
  for (const MemoryPart& part : parts) out.push_back(text(part.name, " ", bytes_text(bytes(part))));
  return join(out);
}

/// What the devices' compiler says, and of a pipeline each stage beside our own plan.
std::string compiled_lines(const CompiledBytes& compiled, const PlanReport& r) {
  std::string out = line_of("  as compiled", to_text(compiled));
  for (std::size_t s = 0; r.pipeline && s < compiled.stages.size(); ++s)
    out += line_of(text("    stage ", s),
                   text(bytes_text(compiled.stages[s].peak()), ", planned ",
                        bytes_text(r.pipeline->stages[s].facts.rank.peak_bytes)));
  return out;
}

std::string memory_lines(const PlanReport& r, const RunConfig& config) {
  const std::string where = r.pipeline           ? text("of a device of stage ", r.stage)
                            : r.mesh.devices > 1 ? "of each device"
                                                 : "";
  std::string out = line_of("memory", text(bytes_text(r.peak_bytes), where.empty() ? "" : " ",
                                           where, capacity_text(r, config)));
  out += line_of("  at its most", parts_text(r.memory));
  if (r.host.memory > 0) out += line_of("  on the host", bytes_text(r.host.memory));
  if (r.host.file > 0) out += line_of("  in a file", bytes_text(r.host.file));
  if (r.save_copy_bytes > 0)
    out += line_of("  beside it", text(bytes_text(r.save_copy_bytes), " to save from"));
  return r.compiled ? out + compiled_lines(*r.compiled, r) : out;
}

std::string time_lines(const PlanReport& r, const Machine& machine) {
  if (!r.prediction)
    return line_of("time",
                   "give --machine NAME, or the FILE of tessera doctor --calibrate, to predict it");
  const Prediction& p = *r.prediction;
  const auto tokens = static_cast<double>(r.tokens_per_step);
  std::vector<std::string> parts;
  for (std::size_t part = 0; part < kNumTimeParts; ++part)
    if (p.exposed[part] > 0)
      parts.push_back(
          text(to_text(static_cast<TimePart>(part)), " ", seconds_text(p.exposed[part])));
  if (p.bubble > 1e-9) parts.push_back(text("waiting ", seconds_text(p.bubble)));
  return line_of("time", text(seconds_text(p.seconds), " a step, ",
                              grouped(std::llround(tokens / p.seconds)),
                              " tokens/s, predicted for ", r.machine)) +
         line_of("  it goes to", join(parts)) +
         (machine.known_error.empty() ? "" : line_of("  known error", machine.known_error));
}

std::string sent_text(const MeshReport& mesh) {
  std::int64_t all = 0;
  std::vector<std::string> along;
  for (const auto& [axes, bytes] : mesh.sent) {
    all += bytes;
    along.push_back(text(bytes_text(bytes), " along ", axes));
  }
  return text(mesh.sends_chosen_rows ? "up to " : "", bytes_text(all), " a step by ",
              mesh.stages == 1 ? "each device" : text("a device of stage ", mesh.stage), ": ",
              join(along));
}

/// What to do with the plan.
std::string next_text(const RunConfig& config) {
  if (config.parallel.machine.kernels == KernelSource::Described)
    return "--auto finds the fastest plan that fits; --verbose prints this one in full";
  std::vector<std::string> more = {"the same flags"};
  if (config.data.empty()) more.emplace_back("--data FILE");
  if (config.output.empty()) more.emplace_back("--output FOLDER");
  return text("tessera train with ", join(more), "; --verbose prints the whole plan");
}

}  // namespace

std::string plan_summary(const PlanReport& r, const RunConfig& config) {
  const bool many = r.mesh.devices > 1;
  std::string out =
      line_of("model", model_text(config, false)) +
      line_of("parameters",
              text(grouped(r.parameters),
                   r.experts > 0 ? text(", of which a token reads ", grouped(r.active_parameters))
                                 : "")) +
      line_of("on", devices_text(config));
  if (const std::string use = use_text(r, config.parallel); !use.empty())
    out += line_of("plan", use);
  if (r.pipeline)
    out += line_of("pipeline", text(headline(*r.pipeline), ", waiting ",
                                    format("%.1f %%", 100 * r.pipeline->bubble), " of a step")) +
           starved_text(*r.pipeline);
  out += line_of("batch", batch_text(r, config)) + memory_lines(r, config);
  out +=
      line_of("work", text(flop_text(r.flops_per_step), " a step", many ? " of all devices" : ""));
  out += time_lines(r, config.parallel.machine);
  if (many) out += line_of("sent", sent_text(r.mesh));
  return out + line_of("next", next_text(config));
}

}  // namespace tessera
