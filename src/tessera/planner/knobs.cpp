#include "tessera/planner/knobs.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr Knob kKnobs[] = {
    {"devices", "", "devices"},
    // It follows from the others.
    {"data-parallel-size", "", "data", Knob::Written::No},
    {"tensor-model-parallel-size", "", "tensor"},
    {"sequence-parallel", "", "sequence"},
    {"context-parallel-size", "", "context"},
    {"expert-model-parallel-size", "", "experts", Knob::Written::WithExperts},
    {"pipeline-model-parallel-size", "", "stages"},
    {"pipeline-schedule", "", "schedule"},
    {"virtual-pipeline-stages", "", "schedule"},
    {"pipeline-layout", "", ""},
    {"micro-batch-size", "", "micro-batch"},
    {"zero-stage",
     "zero-1-memory-optimization zero-2-memory-optimization zero-3-memory-optimization "
     "fsdp-memory-optimization",
     "ZeRO"},
    {"optimizer-shard-size", "", "ZeRO"},
    {"recompute-granularity", "checkpoint-activations", "recomputing"},
    {"recompute-layers", "", "recomputing"},
    {"offload-optimizer", "", "offload"},
    {"offload-gradients", "", "offload"},
    {"offload-parameters", "", "offload"},
    {"offload-activations", "", "offload"},
    {"rank-order", "", "order"},
    {"bf16", "mixed-precision", "floats", Knob::Written::WhereChosen},
    {"fp16", "mixed-precision", "floats", Knob::Written::WhereChosen},
};

}  // namespace

std::span<const Knob> knobs() { return kKnobs; }

bool is_given(const Knob& knob, const RunConfig& base) {
  const auto asked = [&](std::string_view name) { return base.given.contains(name); };
  return asked(knob.field) || std::ranges::any_of(split(knob.others, ' '), asked);
}

bool is_given(std::string_view field, const RunConfig& base) {
  const auto knob = std::ranges::find(kKnobs, field, &Knob::field);
  check(knob != std::end(kKnobs), field, " is not a knob of the planner");
  return is_given(*knob, base);
}

}  // namespace tessera
