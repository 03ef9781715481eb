#include "tessera/planner/short_model.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/planner/space.h"
#include "tessera/schedule/pipeline.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/programs.h"
#include "tessera/train/step.h"

namespace tessera {

namespace {

/// Micro-batches of a short model: a first, a last, and all between, which are alike.
std::int64_t few(std::int64_t micro_batches) { return std::min<std::int64_t>(micro_batches, 3); }

/// Short models whose plans are kept, to price them on more ranks: a few MB each.
constexpr std::size_t kKept = 500;

/// So many layers in each stack.
void set_layers(ModelConfig& model, const std::vector<std::int64_t>& layers) {
  model.layers = layers[0];
  if (layers.size() > 1) model.decoder_layers = layers[1];
}

/// The same axes, numbered in another order, with as many ranks on the data axes as `choice` has.
Mesh in_order(const Mesh& mesh, const std::string& order, const PlanChoice& choice,
              const Machine& machine) {
  const std::int64_t group = choice.zero > 0 ? choice.shard_size : 0;
  std::vector<Axis> out, rest = mesh.axes();
  const auto take = [&](std::string_view name) {
    for (const Axis& axis : mesh.axes()) {
      if (axis.name == name) out.push_back(axis);
      if (axis.name != name) continue;
      if (name == kDataAxis) out.back().size = (group > 0 ? group : choice.data) / choice.experts;
      if (name == kDataOuterAxis) out.back().size = choice.data / group;
    }
    std::erase_if(rest, [&](const Axis& axis) { return axis.name == name; });
  };
  for (const std::string& name : split(order, ',')) {
    if (name == kDataAxis) take(kDataOuterAxis);
    take(name);
    if (name == kDataAxis) take(kExpertAxis);
  }
  out.insert(out.end(), rest.begin(), rest.end());
  std::int64_t neighbours = 1;
  for (auto axis = out.rbegin(); axis != out.rend(); ++axis)
    axis->level = machine.level_of(neighbours *= axis->size);
  return Mesh(std::move(out));
}

bool splits(const PlanChoice& choice) {
  return choice.pipeline > 1 && find_schedule(choice.schedule).splits_backward;
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
  return {c.data, c.experts, c.tensor, c.context, c.micro_batch_size, c.zero, c.shard_size, flags};
}

const ModelUse* ShortModels::priced(const PlanChoice& compiled, const PlanChoice& choice,
                                    std::int64_t micro_batches) {
  const auto [found, fresh] = known_.try_emplace(key_of(compiled, micro_batches));
  Short& model = found->second;
  const auto known = model.priced.find({choice.order, choice.data});
  if (known != model.priced.end()) return &known->second;
  const bool again = !fresh && model.plans.empty() && !model.priced.empty();
  if (fresh || again) {
    Short next = read(compiled, micro_batches);
    next.priced = std::move(model.priced);
    model = std::move(next);
    keep(model);
    // Of as many ranks as it was compiled for: all orders at once, and the plans can go.
    if (compiled.data == choice.data && !model.plans.empty()) {
      PlanChoice next = compiled;
      std::vector<std::string> orders = orders_of(compiled);
      orders.push_back(choice.order);
      for (const std::string& order : orders) {
        next.order = order;
        if (model.priced.contains({order, next.data})) continue;
        model.priced[{order, next.data}] = price(model, compiled, next);
      }
      if (compiled.data > 2 && compiled.shard_size == 0) model.plans.clear();
    }
  }
  const auto priced = model.priced.find({choice.order, choice.data});
  if (priced != model.priced.end()) return &priced->second;
  if (model.plans.empty()) return nullptr;
  return &(model.priced[{choice.order, choice.data}] = price(model, compiled, choice));
}

/// The plans of the latest: others are compiled again where they are asked for.
void ShortModels::keep(Short& model) {
  kept_.push_back(&model);
  if (kept_.size() <= kKept) return;
  kept_.front()->plans.clear();
  kept_.front()->plans.shrink_to_fit();
  kept_.pop_front();
}

const ModelUse* ShortModels::of(const PlanChoice& choice, std::int64_t micro_batches) {
  return priced(choice, choice, micro_batches);
}

/// Of two, which may be of groups that share out experts, where parameters and gradients are not
/// shared out, else of all.
const ModelUse* ShortModels::of_two_ranks(const PlanChoice& choice, std::int64_t micro_batches,
                                          Ranks ranks) {
  PlanChoice two = choice;
  if (ranks == Ranks::Two || (choice.zero <= 1 && choice.shard_size == 0))
    two.data = std::min(two.data, 2 * std::max(choice.shard_size, choice.experts));
  return priced(two, choice, micro_batches);
}

ModelUse ModelUse::with_loop(double times) const {
  ModelUse out = *this;
  const auto scale = [&](StageUse& use) {
    for (std::size_t part = 0; part < StageUse::kBegin; ++part) use[part] *= times;
    for (std::size_t part = StageUse::kProducts; part <= StageUse::kCopies; ++part)
      use[part] *= times;
  };
  for (StageUse* use : {&out.base, &out.before, &out.after}) scale(*use);
  for (StageUse& use : out.layer) scale(use);
  for (StageUse& use : out.between) scale(use);
  out.message_bytes *= times;
  return out;
}

void ModelUse::add_difference(const ModelUse& with, const ModelUse& without) {
  base += with.base - without.base;
  before += with.before - without.before;
  after += with.after - without.after;
  for (std::size_t s = 0; s < layer.size(); ++s) layer[s] += with.layer[s] - without.layer[s];
  for (std::size_t s = 0; s < between.size(); ++s)
    between[s] += with.between[s] - without.between[s];
}

namespace {

/// Whether layers take more memory than what they keep less of: at its fullest it has gradients,
/// not activations.
bool hides_kept(const ModelUse& again, const ModelUse& without) {
  constexpr double kMost = 0.75;  // of what is kept less; in full view it is all, but for rounding
  for (std::size_t s = 0; s < again.layer.size(); ++s) {
    const StageUse saved = without.layer[s] - again.layer[s];
    if (saved[StageUse::kPeak] < kMost * saved[StageUse::kKept]) return true;
  }
  return false;
}

}  // namespace

const ModelUse* ShortModels::about(const PlanChoice& choice, std::int64_t micro_batches) {
  return added_up(choice, micro_batches, Ranks::TwoWhereWhole);
}

const ModelUse* ShortModels::seconds_about(const PlanChoice& choice, std::int64_t micro_batches) {
  return added_up(choice, micro_batches, Ranks::Two);
}

const ModelUse* ShortModels::added_up(const PlanChoice& choice, std::int64_t micro_batches,
                                      Ranks ranks) {
  const auto [found, fresh] =
      about_.try_emplace({key_of(choice, micro_batches), choice.order, ranks});
  std::unique_ptr<ModelUse>& out = found->second;
  if (!fresh) return out.get();
  PlanChoice plain = choice;
  plain.recompute = Recompute::None;
  plain.offload = base_.parallel.offload;
  const ModelUse* of_plain = of_two_ranks(plain, micro_batches, ranks);
  if (of_plain == nullptr) return nullptr;
  ModelUse sum = *of_plain;
  if (choice.recompute != Recompute::None) {
    PlanChoice without = plain;  // what layers compute again does not depend on what is shared out
    without.zero = without.shard_size = 0;
    PlanChoice again = without;
    again.recompute = choice.recompute;
    const ModelUse *a = of_two_ranks(again, micro_batches, ranks),
                   *b = of_two_ranks(without, micro_batches, ranks);
    if (a == nullptr || b == nullptr) return nullptr;
    if (choice.zero > 0 && ranks == Ranks::TwoWhereWhole && hides_kept(*a, *b)) {
      again = plain;
      again.recompute = choice.recompute;
      a = of_two_ranks(again, micro_batches, ranks), b = of_plain;
      if (a == nullptr) return nullptr;
    }
    sum.add_difference(*a, *b);
  }
  for (const OffloadKind& kind : kOffloadKinds) {
    if (choice.offload.*kind.offloads == plain.offload.*kind.offloads) continue;
    // Activations that are not kept are not copied either.
    PlanChoice without = plain;
    if (kind.offloads == &OffloadStrategy::activations) without.recompute = choice.recompute;
    // All levels share out the optimizer's states alike.
    const bool moments = kind.offloads == &OffloadStrategy::moments;
    if (moments && without.shard_size == 0) without.zero = std::min<std::int64_t>(without.zero, 1);
    PlanChoice one = without;
    one.offload.*kind.offloads = choice.offload.*kind.offloads;
    const ModelUse *a = of_two_ranks(one, micro_batches, ranks),
                   *b = of_two_ranks(without, micro_batches, ranks);
    if (a == nullptr || b == nullptr) return nullptr;
    sum.add_difference(*a, *b);
  }
  out = std::make_unique<ModelUse>(std::move(sum));
  return out.get();
}

ShortModels::Short ShortModels::read(const PlanChoice& choice, std::int64_t micro_batches) {
  try {
    return choice.pipeline > 1 ? in_stages(choice, micro_batches)
                               : in_one_stage(choice, micro_batches);
  } catch (const Error& error) {
    if (error.fault() != Fault::Usage) throw;
    return {};
  }
}

std::size_t ShortModels::stacks() const { return base_.model.family->stacks(base_.model).size(); }

std::vector<Plan> ShortModels::compile(const PlanChoice& choice,
                                       const std::vector<std::int64_t>& layers,
                                       std::int64_t micro_batches, bool experts) {
  RunConfig config = base_;
  set_layers(config.model, layers);
  config.model.expert_layers = "1";
  if (!experts) config.model.experts = {};
  config.global_batch_size = choice.data * choice.micro_batch_size * few(micro_batches);
  config.dump_dir.clear();
  config = with(config, choice);
  ++compiled_;
  // The program that trains, alone: it takes the most.
  const RunSetup setup(std::move(config));
  Graph step = train_step(setup.task(), setup.config.optimizer, setup.config.global_batch_size);
  if (setup.precision) step = compute_in(step, *setup.precision, is_frozen(setup.config.optimizer));
  std::vector<ProgramSource> sources;
  sources.push_back({kTrainProgram, std::move(step), setup.step});
  CompileOptions options = setup.compile;
  // They compare plans. Whole plans are verified, and laid out exactly.
  options.verified = options.exact_layout = false;
  return compile_stages(std::move(sources), device_of_(setup.config), options);
}

namespace {

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

ModelUse ShortModels::price(Short& model, const PlanChoice& compiled,
                            const PlanChoice& choice) const {
  const std::string order = choice.order.empty() ? base_.parallel.rank_order : choice.order;
  std::vector<std::vector<StageUse>> uses;
  for (std::vector<Plan>& plans : model.plans) {
    for (Plan& plan : plans) plan.mesh = in_order(plan.mesh, order, choice, machine_);
    const std::size_t i = uses.size();
    if (model.bytes.size() == i) {
      model.bytes.push_back(stage_bytes_of(plans, *model.pipeline));
      for (Plan& plan : plans) keep_seconds(plan);
    }
    uses.push_back(stage_seconds_of(plans, *model.pipeline, machine_));
    for (std::size_t s = 0; s < plans.size(); ++s) uses[i][s] += model.bytes[i][s];
    for (StageUse& use : uses.back())
      take_data_ranks(use, compiled.data, choice.data, choice.zero > 0);
  }
  // With experts, and without.
  const double dense = dense_share();
  const std::size_t each = dense > 0 ? uses.size() / 2 : uses.size();
  const std::span<const std::vector<StageUse>> all = uses;
  ModelUse out = use_of(model, all.first(each));
  if (dense > 0) {
    const ModelUse without = use_of(model, all.subspan(each));
    for (std::size_t s = 0; s < out.layer.size(); ++s)
      out.layer[s] += dense * (without.layer[s] - out.layer[s]);
  }
  out.sample_bytes = model.sample_bytes;
  out.message_bytes = model.message_bytes;
  return out;
}

ModelUse ShortModels::use_of(const Short& model,
                             std::span<const std::vector<StageUse>> uses) const {
  if (model.in_stages) return apart(uses[0], stacks());
  ModelUse out;
  out.base = uses[0][0];
  out.between.resize(stacks() - 1);
  for (std::size_t s = 0; s < stacks(); ++s) {
    out.layer.push_back(uses[s + 1][0] - uses[0][0]);
    out.base = out.base - 2.0 * out.layer[s];
  }
  return out;
}

double ShortModels::dense_share() const {
  const ModelConfig& model = base_.model;
  if (!has_experts(model) || model.expert_layers == "1") return 0;
  std::int64_t dense = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) dense += has_experts(model, i) ? 0 : 1;
  return static_cast<double>(dense) / static_cast<double>(model.layers);
}

ShortModels::Short ShortModels::in_stages(const PlanChoice& choice, std::int64_t micro_batches) {
  PlanChoice short_one = choice;
  short_one.schedule = simplest_schedule(splits(choice)).name;
  short_one.chunks = 1;
  short_one.order.clear();
  short_one.recomputed.clear();
  short_one.given_layers.clear();
  short_one.layout.clear();
  for (std::size_t s = 0; s < stacks(); ++s)
    short_one.layout.insert(short_one.layout.end(), {1, 1, 2});
  short_one.layout.push_back(1);
  short_one.pipeline = std::ssize(short_one.layout);
  std::vector<std::int64_t> layers(stacks(), 4);
  ++layers.back();
  Short out;
  out.in_stages = true;
  out.plans.push_back(compile(short_one, layers, micro_batches));
  if (dense_share() > 0)
    out.plans.push_back(compile(short_one, layers, micro_batches, /*experts=*/false));
  for (const Plan& plan : out.plans[0]) {
    out.sample_bytes = std::max(out.sample_bytes, static_cast<double>(sample_bytes_of(plan)));
    for (const EdgeBytes& edge : plan.program(kTrainProgram).edges)
      out.message_bytes = std::max(out.message_bytes, static_cast<double>(edge.bytes));
  }
  out.pipeline = std::make_unique<Pipeline>(make_schedule(
      short_one.schedule, {static_cast<int>(short_one.pipeline), 1, few(micro_batches)}));
  return out;
}

ShortModels::Short ShortModels::in_one_stage(const PlanChoice& choice, std::int64_t micro_batches) {
  PlanChoice short_one = choice;
  short_one.order.clear();
  short_one.recomputed.clear();
  short_one.given_layers.clear();
  Short out;
  out.pipeline =
      std::make_unique<Pipeline>(make_schedule(kUsualSchedule, {1, 1, few(micro_batches)}));
  for (const bool experts : {true, false}) {
    if (!experts && dense_share() == 0) break;
    std::vector<std::int64_t> layers(stacks(), 2);
    out.plans.push_back(compile(short_one, layers, micro_batches, experts));
    for (std::size_t s = 0; s < stacks(); ++s) {
      ++layers[s];
      out.plans.push_back(compile(short_one, layers, micro_batches, experts));
      --layers[s];
    }
  }
  out.sample_bytes = static_cast<double>(sample_bytes_of(out.plans[0][0]));
  return out;
}

}  // namespace tessera
