#include "tessera/planner/knobs.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

using Value = std::optional<std::string>;

std::string switch_text(bool on) { return on ? "true" : "false"; }

/// "0-3,8": numbers that rise, as ranges.
std::string ranges_text(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> out;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    out.push_back(first == last ? text(numbers[first]) : text(numbers[first], "-", numbers[last]));
  }
  return join(out, ",");
}

/// The layers that are computed again; "all".
std::string layers_text(const PlanChoice& choice, std::int64_t layers) {
  if (!choice.told_layers.empty()) return choice.told_layers;
  if (choice.recomputed.empty()) return "all";
  const std::vector<std::int64_t> one = {layers};
  const std::vector<std::int64_t>& layout = choice.layout.empty() ? one : choice.layout;
  std::vector<std::int64_t> out;
  std::int64_t first = 0;
  for (std::size_t c = 0; c < layout.size(); ++c) {
    for (std::int64_t i = 0; i < std::min(choice.recomputed[c], layout[c]); ++i)
      out.push_back(first + i);
    first += layout[c];
  }
  return std::ssize(out) == layers ? "all" : ranges_text(out);
}

Value float_value(const PlanChoice& choice, Floats floats) {
  if (choice.floats == Floats::AsAsked) return std::nullopt;
  return switch_text(choice.floats == floats);
}

// clang-format off
constexpr Knob kKnobs[] = {
    {"devices", "", "devices",
     [](const PlanChoice& c, const RunConfig&) -> Value { return text(c.devices()); }},
    {"data-parallel-size", "", "data",
     [](const PlanChoice& c, const RunConfig&) -> Value { return text(c.data); }, false},
    {"tensor-model-parallel-size", "", "tensor",
     [](const PlanChoice& c, const RunConfig&) -> Value { return text(c.tensor); }},
    {"sequence-parallel", "", "sequence",
     [](const PlanChoice& c, const RunConfig&) -> Value { return switch_text(c.sequence); }},
    {"context-parallel-size", "", "context",
     [](const PlanChoice& c, const RunConfig&) -> Value { return text(c.context); }},
    {"pipeline-model-parallel-size", "", "stages",
     [](const PlanChoice& c, const RunConfig&) -> Value { return text(c.pipeline); }},
    {"pipeline-schedule", "", "schedule",
     [](const PlanChoice& c, const RunConfig&) -> Value {
       return c.pipeline > 1 ? c.schedule : ParallelConfig().schedule;
     }},
    {"virtual-pipeline-stages", "", "schedule",
     [](const PlanChoice& c, const RunConfig&) -> Value {
       return text(c.pipeline > 1 ? c.chunks : 0);
     }},
    {"pipeline-layout", "", "",
     [](const PlanChoice& c, const RunConfig&) -> Value {
       return c.pipeline > 1 ? join(c.layout, ",") : "";
     }},
    {"micro-batch-size", "", "micro-batch",
     [](const PlanChoice& c, const RunConfig&) -> Value { return text(c.micro_batch_size); }},
    {"zero-stage",
     "zero-1-memory-optimization zero-2-memory-optimization zero-3-memory-optimization "
     "fsdp-memory-optimization", "ZeRO",
     [](const PlanChoice& c, const RunConfig&) -> Value { return text(c.zero); }},
    {"optimizer-shard-size", "", "ZeRO",
     [](const PlanChoice& c, const RunConfig&) -> Value {
       return text(c.zero > 0 ? c.shard_size : 0);
     }},
    {"recompute-granularity", "checkpoint-activations", "recomputing",
     [](const PlanChoice& c, const RunConfig&) -> Value { return text(to_text(c.recompute)); }},
    {"recompute-layers", "", "recomputing",
     [](const PlanChoice& c, const RunConfig& base) -> Value {
       return layers_text(c, layer_count(base.model));
     }},
    {"offload-optimizer", "", "offload",
     [](const PlanChoice& c, const RunConfig&) -> Value { return switch_text(c.offload.moments); }},
    {"offload-gradients", "", "offload",
     [](const PlanChoice& c, const RunConfig&) -> Value {
       return switch_text(c.offload.gradients);
     }},
    {"offload-parameters", "", "offload",
     [](const PlanChoice& c, const RunConfig&) -> Value {
       return switch_text(c.offload.parameters);
     }},
    {"offload-activations", "", "offload",
     [](const PlanChoice& c, const RunConfig&) -> Value {
       return switch_text(c.offload.activations);
     }},
    {"rank-order", "", "order",
     [](const PlanChoice& c, const RunConfig& base) -> Value {
       return c.order.empty() ? base.parallel.rank_order : c.order;
     }},
    {"bf16", "mixed-precision", "floats",
     [](const PlanChoice& c, const RunConfig&) -> Value { return float_value(c, Floats::BF16); }},
    {"fp16", "mixed-precision", "floats",
     [](const PlanChoice& c, const RunConfig&) -> Value { return float_value(c, Floats::F16); }},
};
// clang-format on

}  // namespace

std::span<const Knob> knobs() { return kKnobs; }

bool is_told(const Knob& knob, const RunConfig& base) {
  const auto asked = [&](std::string_view name) { return base.asked_for.contains(name); };
  return asked(knob.field) || std::ranges::any_of(split(knob.others, ' '), asked);
}

bool is_told(std::string_view field, const RunConfig& base) {
  const auto knob = std::ranges::find(kKnobs, field, &Knob::field);
  check(knob != std::end(kKnobs), field, " is no knob of the planner");
  return is_told(*knob, base);
}

}  // namespace tessera
