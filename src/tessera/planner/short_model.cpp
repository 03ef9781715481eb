#include "tessera/planner/short_model.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/planner/space.h"
#include "tessera/schedule/pipeline.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/programs.h"
#include "tessera/train/step.h"

namespace tessera {

namespace {

/// Micro-batches of a short model: a first, a last, and all between, which are alike.
std::int64_t few(std::int64_t micro_batches) { return std::min<std::int64_t>(micro_batches, 3); }

/// So many layers in each stack.
void set_layers(ModelConfig& model, const std::vector<std::int64_t>& layers) {
  model.layers = layers[0];
  if (layers.size() > 1) model.decoder_layers = layers[1];
}

/// The same axes, numbered in another order; empty: as they are. Groups of the data axis stay
/// beside it.
Mesh in_order(const Mesh& mesh, const std::string& order, const Machine& machine) {
  if (order.empty()) return mesh;
  std::vector<Axis> out, rest = mesh.axes();
  const auto take = [&](std::string_view name) {
    for (const Axis& axis : mesh.axes()) {
      if (axis.name == name) out.push_back(axis);
    }
    std::erase_if(rest, [&](const Axis& axis) { return axis.name == name; });
  };
  for (const std::string& name : split(order, ',')) {
    if (name == kDataAxis) take(kDataOuterAxis);
    take(name);
  }
  out.insert(out.end(), rest.begin(), rest.end());
  std::int64_t neighbours = 1;
  for (auto axis = out.rbegin(); axis != out.rend(); ++axis)
    axis->level = machine.level_of(neighbours *= axis->size);
  return Mesh(std::move(out));
}

bool splits(const PlanChoice& choice) {
  return choice.pipeline > 1 && (choice.schedule == "zb-h1" || choice.schedule == "zb-v");
}

}  // namespace

ShortModels::Key ShortModels::key_of(const PlanChoice& c, std::int64_t micro_batches) const {
  int flags = 0;
  const auto add = [&](int value, int values) { flags = flags * values + value; };
  add(static_cast<int>(few(micro_batches)), 4);
  add(c.sequence ? 1 : 0, 2);
  add(c.pipeline > 1 ? 1 : 0, 2);
  add(splits(c) ? 1 : 0, 2);
  add(static_cast<int>(c.recompute), 4);
  add(static_cast<int>(c.floats), 4);
  for (const bool on :
       {c.offload.moments, c.offload.gradients, c.offload.parameters, c.offload.activations})
    add(on ? 1 : 0, 2);
  return {c.data, c.tensor, c.context, c.micro_batch_size, c.zero, c.shard_size, flags};
}

const ModelUse* ShortModels::of(const PlanChoice& choice, std::int64_t micro_batches) {
  const auto [found, fresh] = known_.try_emplace(key_of(choice, micro_batches));
  if (fresh) found->second = read(choice, micro_batches);
  const auto use = found->second.find(choice.order);
  return use == found->second.end() ? nullptr : &use->second;
}

void ModelUse::add_difference(const ModelUse& with, const ModelUse& without) {
  base += with.base - without.base;
  before += with.before - without.before;
  after += with.after - without.after;
  for (std::size_t s = 0; s < layer.size(); ++s) layer[s] += with.layer[s] - without.layer[s];
  for (std::size_t s = 0; s < between.size(); ++s)
    between[s] += with.between[s] - without.between[s];
}

const ModelUse* ShortModels::about(const PlanChoice& choice, std::int64_t micro_batches) {
  const auto [found, fresh] = about_.try_emplace({key_of(choice, micro_batches), choice.order});
  std::unique_ptr<ModelUse>& out = found->second;
  if (!fresh) return out.get();
  PlanChoice plain = choice;
  plain.recompute = Recompute::None;
  plain.offload = base_.parallel.offload;
  const ModelUse* of_plain = of(plain, micro_batches);
  if (of_plain == nullptr) return nullptr;
  ModelUse sum = *of_plain;
  if (choice.recompute != Recompute::None) {
    PlanChoice without =
        plain;  // what layers compute again does not depend on the batch's other parts
    without.data = std::min<std::int64_t>(choice.data, 2);
    without.zero = without.shard_size = 0;
    PlanChoice again = without;
    again.recompute = choice.recompute;
    const ModelUse *a = of(again, micro_batches), *b = of(without, micro_batches);
    if (a == nullptr || b == nullptr) return nullptr;
    sum.add_difference(*a, *b);
  }
  for (const OffloadKind& kind : kOffloadKinds) {
    if (choice.offload.*kind.offloads == plain.offload.*kind.offloads) continue;
    PlanChoice one = plain;
    one.offload.*kind.offloads = choice.offload.*kind.offloads;
    const ModelUse* a = of(one, micro_batches);
    if (a == nullptr) return nullptr;
    sum.add_difference(*a, *of_plain);
  }
  out = std::make_unique<ModelUse>(std::move(sum));
  return out.get();
}

ShortModels::ByOrder ShortModels::read(const PlanChoice& choice, std::int64_t micro_batches) {
  try {
    return choice.pipeline > 1 ? in_stages(choice, micro_batches)
                               : in_one_stage(choice, micro_batches);
  } catch (const Error&) {
    return {};
  }
}

std::vector<Plan> ShortModels::compile(const PlanChoice& choice,
                                       const std::vector<std::int64_t>& layers,
                                       std::int64_t micro_batches) {
  RunConfig config = base_;
  set_layers(config.model, layers);
  config.global_batch_size = choice.data * choice.micro_batch_size * few(micro_batches);
  config.dump_dir.clear();
  config = with(config, choice);
  ++compiled_;
  // The program that trains, alone: it takes the most.
  Graph step = train_step(task_of(config.model), config.optimizer, config.global_batch_size);
  if (const auto precision = precision_of(config)) step = compute_in(step, *precision);
  ParallelConfig parallel = config.parallel;
  parallel.micro_batches = config.micro_batches();
  std::vector<ProgramSource> sources;
  sources.push_back(
      {kTrainProgram, std::move(step), strategy_of(parallel, BatchSplit::Cut, config.model)});
  CompileOptions options;
  options.optimize = Optimizations::all(config.graph_optimization);
  options.machine = parallel.machine;
  return compile_stages(std::move(sources), device_of_(config), options);
}

namespace {

/// What stages take, each order of the axes for itself.
std::map<std::string, std::vector<StageUse>> uses_by_order(const PlanChoice& choice,
                                                           std::vector<Plan> plans,
                                                           const Pipeline& pipeline,
                                                           const Machine& machine) {
  std::map<std::string, std::vector<StageUse>> out;
  for (const std::string& order : orders_of(choice)) {
    for (Plan& plan : plans) plan.mesh = in_order(plan.mesh, order, machine);
    out.emplace(order, stage_uses_of(plans, pipeline, machine));
  }
  return out;
}

/// Of the stages of a short model of so many stacks.
ModelUse apart(const std::vector<StageUse>& uses, std::size_t stacks) {
  ModelUse out;
  for (std::size_t s = 0; s < stacks; ++s) {
    const StageUse &first = uses[3 * s], &one = uses[3 * s + 1], &two = uses[3 * s + 2];
    out.layer.push_back(two - one);
    if (s == 0) {
      out.base = one - out.layer[0];
      out.before = first - one;
    } else {
      out.between.push_back(first - one);
    }
    if (s + 1 == stacks) out.after = uses[3 * stacks] - one;
  }
  return out;
}

}  // namespace

ShortModels::ByOrder ShortModels::in_stages(const PlanChoice& choice, std::int64_t micro_batches) {
  const std::size_t stacks = base_.model.family->stacks(base_.model).size();
  PlanChoice short_one = choice;
  short_one.schedule = splits(choice) ? "zb-h1" : "1f1b";
  short_one.chunks = 1;
  short_one.order.clear();
  short_one.recomputed.clear();
  short_one.layout.clear();
  for (std::size_t s = 0; s < stacks; ++s)
    short_one.layout.insert(short_one.layout.end(), {1, 1, 2});
  short_one.layout.push_back(1);
  short_one.pipeline = std::ssize(short_one.layout);
  std::vector<std::int64_t> layers(stacks, 4);
  ++layers.back();
  std::vector<Plan> plans = compile(short_one, layers, micro_batches);
  double samples = 0, messages = 0;
  for (const Plan& plan : plans) {
    samples = std::max(samples, static_cast<double>(sample_bytes_of(plan)));
    for (const EdgeBytes& edge : plan.program(kTrainProgram).edges)
      messages = std::max(messages, static_cast<double>(edge.bytes));
  }
  const Pipeline pipeline(make_schedule(
      short_one.schedule, {static_cast<int>(short_one.pipeline), 1, few(micro_batches)}));
  ByOrder out;
  for (const auto& [order, uses] : uses_by_order(choice, std::move(plans), pipeline, machine_)) {
    ModelUse& use = out[order] = apart(uses, stacks);
    use.sample_bytes = samples;
    use.message_bytes = messages;
  }
  return out;
}

ShortModels::ByOrder ShortModels::in_one_stage(const PlanChoice& choice,
                                               std::int64_t micro_batches) {
  const std::size_t stacks = base_.model.family->stacks(base_.model).size();
  PlanChoice short_one = choice;
  short_one.order.clear();
  short_one.recomputed.clear();
  double samples = 0;
  const Pipeline pipeline(make_schedule("1f1b", {1, 1, few(micro_batches)}));
  const auto uses = [&](const std::vector<std::int64_t>& layers) {
    std::vector<Plan> plans = compile(short_one, layers, micro_batches);
    samples = static_cast<double>(sample_bytes_of(plans[0]));
    return uses_by_order(choice, std::move(plans), pipeline, machine_);
  };
  std::vector<std::int64_t> layers(stacks, 2);
  const auto whole = uses(layers);
  ByOrder out;
  for (const auto& [order, use] : whole) {
    out[order].base = use[0];
    out[order].sample_bytes = samples;
    out[order].between.resize(stacks - 1);
  }
  for (std::size_t s = 0; s < stacks; ++s) {
    ++layers[s];
    for (const auto& [order, use] : uses(layers)) {
      ModelUse& of = out[order];
      of.layer.push_back(use[0] - whole.at(order)[0]);
      of.base = of.base - 2.0 * of.layer[s];
    }
    --layers[s];
  }
  return out;
}

}  // namespace tessera
