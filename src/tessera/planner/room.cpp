#include "tessera/planner/room.h"

#include <algorithm>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ir/strategy.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/planner/knobs.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/programs.h"
#include "tessera/train/step.h"

namespace tessera {

namespace {

/// Whether such tensors may lie on the host, beside the memory that is capped.
bool may_leave(const PlanQuestion& question, bool OffloadStrategy::*what) {
  const RunConfig& base = question.base;
  if (host_pool_of(base) == HostPool::SameMemory) return false;
  const OffloadKind& kind = *std::ranges::find(kOffloadKinds, what, &OffloadKind::offloads);
  return base.parallel.offload.*what ||
         !(is_given(kind.field, base) || base.given.contains("remote-device"));
}

}  // namespace

std::string cap_text(const PlanQuestion& question) {
  const std::string margin =
      question.margin == 0 ? "" : text(", of which memory-margin leaves ", *question.room());
  return text(question.base.memory_cap != "none"
                  ? text("memory-cap ", question.base.memory_cap)
                  : text("the memory of a device of ", question.machine_name()),
              " (", *question.cap, " bytes", margin, ")");
}

LeastBytes least_of_weight(const PlanQuestion& question) {
  ModelConfig model = question.base.model;  // layers are alike, but for experts
  model.layers = 1;
  model.expert_layers = "1";
  if (model.decoder_layers > 0) model.decoder_layers = 1;
  const bool small_floats = question.precision || precision_of(question.base);
  const bool given = is_given("tensor-model-parallel-size", question.base);
  const std::int64_t most =
      given ? question.base.parallel.tensor
            : std::min(question.devices, std::max<std::int64_t>(model.heads, 1));
  const bool shares_given = is_given("expert-model-parallel-size", question.base);
  const std::int64_t shares =
      shares_given ? question.base.parallel.experts
                   : std::max<std::int64_t>(has_experts(model) ? model.experts.experts : 1, 1);
  const std::vector<std::string> blocks = layer_blocks(model);
  const Graph step = train_step(task_of(model), question.base.optimizer, 1);
  LeastBytes out;
  for (const State& state : step.states()) {
    const TensorType& type = step.type(state.value);
    // Tables of positions may be cut with the context.
    const bool of_layer = std::ranges::any_of(
        blocks, [&](const std::string& block) { return starts_with(state.path, block + "."); });
    const bool of_words = std::ranges::find(type.shape, model.vocabulary) != type.shape.end();
    if (state.role != Role::Parameter || !(of_layer || of_words)) continue;
    const std::int64_t parts = matches(kExpertPaths, state.path)
                                   ? std::max(most, std::min(question.devices, most * shares))
                                   : most;
    const std::int64_t bytes = type.bytes() / (small_floats ? 2 : 1) / parts;
    if (bytes > out.bytes)
      out = {bytes, text(state.path, " ", to_text(type), " takes on one of ",
                         counted(parts, "device"), " while it is read")};
  }
  return out;
}

LeastBytes least_of_states(const PlanQuestion& question) {
  const bool parameters = !may_leave(question, &OffloadStrategy::parameters),
             moments = !may_leave(question, &OffloadStrategy::moments);
  const Graph step = train_step(task_of(question.base.model), question.base.optimizer, 1);
  LeastBytes out;
  for (const State& state : step.states())
    if ((state.role == Role::Parameter && parameters) || (state.role == Role::Moment && moments))
      out.bytes += step.type(state.value).bytes();
  out.bytes /= question.devices;
  out.of = text(parameters ? "parameters" : "", parameters && moments ? " and " : "",
                moments ? "the optimizer's states" : "", " take on one of ",
                counted(question.devices, "device"), " if sharded evenly");
  return out;
}

void require_room(const PlanQuestion& question) {
  const std::optional<std::int64_t> room = question.room();
  if (!room) return;
  for (const LeastBytes& least : {least_of_weight(question), least_of_states(question)})
    require(least.bytes <= *room, cap_text(question), " is below ", least.bytes,
            " bytes, the least that ", least.of, "; raise the cap");
}

}  // namespace tessera
