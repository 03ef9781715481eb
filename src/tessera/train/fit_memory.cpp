#include "tessera/train/fit_memory.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tensor/machine.h"
#include "tessera/train/facts.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

/// The fields that the search changes.
struct Choice {
  Recompute recompute = Recompute::None;
  std::int64_t micro_batch_size = 0;
  OffloadStrategy offload;
  double seconds = 0;
};

RunConfig with(const RunConfig& config, const Choice& choice) {
  RunConfig out = config;
  out.checkpoint_activations = false;
  out.recompute_granularity = to_text(choice.recompute);
  out.micro_batch_size = choice.micro_batch_size;
  out.offload_optimizer = choice.offload.moments;
  out.offload_gradients = choice.offload.gradients;
  out.offload_parameters = choice.offload.parameters;
  complete(out);
  return out;
}

std::string flags_text(const Choice& choice) {
  return text("--recompute-granularity ", to_text(choice.recompute), " --micro-batch-size ",
              choice.micro_batch_size, choice.offload.moments ? " --offload-optimizer" : "",
              choice.offload.gradients ? " --offload-gradients" : "",
              choice.offload.parameters ? " --offload-parameters" : "");
}

struct Planned {
  RankFacts ranks;                   // FLOPs: of a device, in the mean over stages
  std::int64_t parameter_bytes = 0;  // of the whole model
};

Planned facts_with(const RunConfig& config, const Choice& choice, Device& device) {
  RunConfig candidate = with(config, choice);
  candidate.dump_dir.clear();
  WantedPrograms wanted = wanted_programs(candidate);
  wanted.stages = true;
  std::vector<RankFacts> stages;
  const Compiled compiled = compile_programs(candidate, wanted, device);
  for (const Plan* plan : plans_of(compiled)) stages.push_back(facts_of(*plan));
  Planned out{together(stages), 4 * count_parameters(compiled.plan)};
  out.ranks.flops /= static_cast<double>(stages.size());
  out.ranks.recomputed_flops /= static_cast<double>(stages.size());
  return out;
}

/// Those that divide the batch of a device evenly, the given one first.
std::vector<std::int64_t> smaller_micro_batches(const RunConfig& config) {
  std::vector<std::int64_t> out = {config.micro_batch_size};
  const std::int64_t data = config.parallel.data();
  for (std::int64_t size = config.micro_batch_size - 1; size > 0; --size) {
    if (config.global_batch_size % (size * data) == 0) out.push_back(size);
  }
  return out;
}

/// From what was asked for to everything.
std::vector<OffloadStrategy> more_offload(OffloadStrategy given) {
  std::vector<OffloadStrategy> out = {given};
  for (const auto which :
       {&OffloadStrategy::moments, &OffloadStrategy::gradients, &OffloadStrategy::parameters}) {
    if (given.*which) continue;
    given.*which = true;
    out.push_back(given);
  }
  return out;
}

/// What a choice adds to a step. A micro-batch reads the parameters twice, and reads and writes
/// what gradients add up to.
double extra_seconds(const RunConfig& config, const Choice& choice, double recomputed_flops,
                     double parameter_bytes) {
  const Machine machine;
  const RunConfig candidate = with(config, choice);
  const auto times = static_cast<double>(candidate.micro_batches());
  const OffloadStrategy& o = choice.offload;
  const double copied =
      (o.moments ? 3.0 : 0.0) + (o.gradients ? times : 0.0) + (o.parameters ? 2 * times + 1 : 0.0);
  return machine.work_seconds(recomputed_flops, 0) +
         machine.work_seconds(0, 4 * parameter_bytes * times) +
         machine.move_seconds(Level::Core, copied * parameter_bytes);
}

}  // namespace

std::optional<std::int64_t> parse_memory_cap(std::string_view cap) {
  if (cap == "none") return std::nullopt;
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
                             {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
                             {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double number = 0;
  const char* const end = cap.data() + cap.size();
  const auto [behind, failure] = std::from_chars(cap.data(), end, number);
  const std::string_view name(behind, static_cast<std::size_t>(end - behind));
  const auto unit = std::ranges::find(kUnits, name, &Unit::name);
  const bool legal = failure == std::errc() && unit != std::end(kUnits);
  const double bytes = legal ? number * unit->bytes : 0;
  require(legal && bytes >= 1 && bytes < 0x1p62, "memory-cap is '", cap,
          "'; give bytes, as 10GiB (10 x 2^30), 8GB (8e9), 512MiB or 10000000, or none");
  return static_cast<std::int64_t>(bytes);
}

std::string fit_memory(RunConfig& config, Device& device) {
  const std::optional<std::int64_t> cap = parse_memory_cap(config.memory_cap);
  if (!cap) return "";
  const Choice asked{config.parallel.recompute, config.micro_batch_size, config.parallel.offload};
  const Planned as_asked = facts_with(config, asked, device);
  const std::int64_t peak = as_asked.ranks.peak_bytes;
  if (peak <= *cap) return "";

  const double parameter_bytes =
      static_cast<double>(as_asked.parameter_bytes) /
      static_cast<double>(config.parallel.tensor * config.parallel.pipeline);
  std::vector<Choice> choices;
  for (const Recompute what : {Recompute::None, Recompute::Selective, Recompute::Full}) {
    if (what < asked.recompute) continue;
    Choice choice = asked;
    choice.recompute = what;
    const double recomputed = facts_with(config, choice, device).ranks.recomputed_flops;
    for (const std::int64_t size : smaller_micro_batches(config)) {
      for (const OffloadStrategy& offload : more_offload(asked.offload)) {
        choice.micro_batch_size = size;
        choice.offload = offload;
        choice.seconds = extra_seconds(config, choice, recomputed, parameter_bytes);
        choices.push_back(choice);
      }
    }
  }
  std::ranges::stable_sort(choices, {}, &Choice::seconds);
  std::int64_t least = peak;
  Choice least_choice = asked;
  for (const Choice& choice : choices) {
    const RankFacts facts = facts_with(config, choice, device).ranks;
    if (facts.peak_bytes <= *cap) {
      const double before =
          extra_seconds(config, asked, as_asked.ranks.recomputed_flops, parameter_bytes);
      const double whole = before + Machine().work_seconds(as_asked.ranks.model_flops(), 0);
      config = with(config, choice);
      return text("memory-cap ", config.memory_cap, ": ", bytes_text(peak), " planned without it, ",
                  bytes_text(facts.peak_bytes), " with ", flags_text(choice), "; a step is priced ",
                  static_cast<int>(std::lround(100 * (choice.seconds - before) / whole)),
                  " % longer");
    }
    if (facts.peak_bytes < least) least = facts.peak_bytes, least_choice = choice;
  }
  fail(Fault::Usage, "memory-cap ", config.memory_cap, " (", *cap, " bytes) is below ",
       bytes_text(least), " (", least, " bytes), the least that a device can do with, which takes ",
       flags_text(least_choice),
       "; raise the cap, or share the model out: more --devices with --zero-stage 3, "
       "--tensor-model-parallel-size or --pipeline-model-parallel-size");
}

}  // namespace tessera
