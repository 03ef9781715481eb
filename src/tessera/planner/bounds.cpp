#include "tessera/planner/bounds.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The layout chosen without a memory cap has the fastest slowest stage; another layout may still
/// wait less between stages. No layout takes less than this part of the chosen one's seconds.
constexpr double kOfFree = 0.93;

/// A micro-batch in a pipeline of one stage takes at least this part of its seconds in several.
constexpr double kInOneStage = 0.93;
/// What backward takes in the only micro-batch, or one of two, against the cheapest of three:
/// gradients are not added up, which reads and writes as many bytes as the optimizer's states have,
/// times this, in so many kernels; and no less than the part.
constexpr double kFewMicroBatches = 0.75, kAddedUp = 3, kKernelsLess = 16;
/// With ZeRO-2 and 3, shards of gradients are added up, of half as many bytes at most.
constexpr double kShardsAddedUp = kAddedUp / 2;

template <typename Change>
void change_all(ModelUse& use, const Change& change) {
  for (StageUse* part : {&use.base, &use.before, &use.after}) change(*part);
  for (StageUse& part : use.layer) change(part);
  for (StageUse& part : use.between) change(part);
}

void scale_layers(ModelUse& use, double forward, double backward) {
  for (StageUse& layer : use.layer) {
    for (std::size_t i = StageUse::kForward; i < StageUse::kBackward; ++i) layer[i] *= forward;
    for (std::size_t i = StageUse::kBackward; i < StageUse::kBegin; ++i) layer[i] *= backward;
  }
}

/// As if each micro-batch took what the one does in which layers take least. That of all parts, as
/// what they are besides layers is a difference, which may be negative.
void take_cheapest_micro_batch(ModelUse& use) {
  for (std::size_t first = StageUse::kForward; first < StageUse::kBegin; first += 3) {
    std::array<double, 3> layers{};
    for (const StageUse& layer : use.layer)
      for (std::size_t i = 0; i < 3; ++i) layers[i] += layer[first + i];
    const auto least = static_cast<std::size_t>(std::ranges::min_element(layers) - layers.begin());
    change_all(use, [&](StageUse& part) {
      const double seconds = part[first + least];
      for (std::size_t i = 0; i < 3; ++i) part[first + i] = seconds;
    });
  }
}

/// Of gradients, and of parameters, against summing the gradients whole: half as much is sent, of
/// floats that may be half as large; and a little less, as not all is shared out.
constexpr double kSumParts = 0.48, kGatherParts = 0.24;

/// Seconds to sum all gradients once.
double sums_of(const StageUse& use) { return use[StageUse::kDataLast] + use[StageUse::kDataOnce]; }

/// Adds ZeRO over `data` ranks: an update of a shard, `once` seconds of traffic in the update
/// (beside its kernels with `overlap`) and `last` seconds after the loop.
void share_out(StageUse& use, std::int64_t data, bool overlap, double once, double last) {
  const double kernels =
      std::max(0.0, use[StageUse::kUpdate] - use[StageUse::kDataOnce]) / static_cast<double>(data);
  use[StageUse::kUpdate] = overlap ? std::max(kernels, once) : kernels + once;
  use[StageUse::kBegin] = std::min(0.0, use[StageUse::kBegin]);
  use[StageUse::kDataOnce] = once;
  use[StageUse::kDataLast] = last;
}

}  // namespace

Bounds::Bounds(const RunConfig& base, const Machine& machine, const Space& space,
               ShortModels& models)
    : base_(base), machine_(machine), space_(space), models_(models) {
  for (const LayerStack& stack : base.model.family->stacks(base.model))
    stacks_.push_back(stack.layers);
}

/// Of layers of which nothing is computed again, as if what takes one pass over memory were: that
/// may even take less time than reading it. False: it does not compile.
bool Bounds::read(const PlanChoice& choice, std::int64_t micro_batches, ModelUse& out) {
  PlanChoice less = choice;
  less.recompute = space_.less(choice.recompute);
  // What is computed again below is not copied.
  less.offload.activations = base_.parallel.offload.activations;
  // Of fewer than three micro-batches of a size there is one number of ranks: nothing to share.
  const ModelUse* use = micro_batches < 3 ? models_.about(less, micro_batches)
                                          : models_.seconds_about(less, micro_batches);
  if (use == nullptr) return false;
  out = *use;
  const Floor& floor = floor_of(choice);
  scale_layers(out, floor.forward, floor.backward);
  return true;
}

const Bounds::Floor& Bounds::floor_of(const PlanChoice& choice) {
  const auto [found, fresh] =
      floors_.try_emplace({choice.tensor, choice.context, choice.sequence, choice.floats});
  Floor& out = found->second;
  if (!fresh) return out;
  PlanChoice large = space_.starts(choice).front();
  large.data = large.experts = large.chunks = 1;
  large.zero = large.shard_size = 0;
  large.schedule = PlanChoice().schedule;
  large.micro_batch_size = base_.global_batch_size;
  PlanChoice less = large;
  less.recompute = space_.less(large.recompute);
  // Of parts of the context computing again saves what it does of the whole.
  const bool parts = choice.context > 1;
  if (parts) {
    PlanChoice whole = choice;
    whole.context = 1;
    const Floor& of_whole = floor_of(whole);
    out.forward = of_whole.forward;
    out.backward = of_whole.backward;
    large = less;
  }
  for (const std::string& order : orders_of(large)) {
    large.order = less.order = order;
    large.pipeline = less.pipeline = 2;
    if (models_.seconds_about(less, 1) == nullptr) large.pipeline = less.pipeline = 1;
    const ModelUse *a = models_.seconds_about(less, 1), *b = models_.seconds_about(large, 1);
    if (a == nullptr || b == nullptr) continue;
    ModelUse use = least_of(*a, *b);
    if (parts) scale_layers(use, out.forward, out.backward);
    for (std::size_t s = 0; s < stacks_.size() && !parts; ++s) {
      const StageUse &all = a->layer[s], &some = use.layer[s];
      out.forward =
          std::min(out.forward, some[StageUse::kForward + 1] / all[StageUse::kForward + 1]);
      out.backward =
          std::min(out.backward, some[StageUse::kBackward + 1] / all[StageUse::kBackward + 1]);
    }
    out.use = out.use.layer.empty() ? use : least_of(out.use, use);
  }
  if (out.use.layer.empty()) out.use.layer.resize(stacks_.size());  // not known: 0
  out.use = out.use.with_loop(1 / static_cast<double>(large.micro_batch_size));
  take_cheapest_micro_batch(out.use);
  change_all(out.use, [](StageUse& part) { part[StageUse::kDataLast] = 0; });
  return out;
}

double Bounds::of_floor(const PlanChoice& split, const ModelUse& floor) const {
  ModelUse use = floor.with_loop(static_cast<double>(split.micro_batch_size));
  change_all(use, [&](StageUse& part) { share_out(part, split.data, true, 0, 0); });
  PipelineShape shape{split.pipeline, 1, -1, true, {}, split.devices() / split.pipeline};
  if (split.pipeline > 1) shape.chunks = 0;  // any number
  return least_seconds(use, shape, stacks_, space_.micro_batches(split), machine_);
}

double Bounds::of_split(const PlanChoice& split) { return of_floor(split, floor_of(split).use); }

double Bounds::of_sizes(const PlanChoice& frame) {
  double out = kNever;
  Floats floats = Floats::AsAsked;
  for (const PlanChoice& split : space_.splits(frame)) {
    // The smallest micro-batches are the first, and take the least until all stages work.
    if (out < kNever && split.floats == floats) continue;
    floats = split.floats;
    PlanChoice alone = split;
    alone.data = alone.experts = alone.tensor = alone.context = 1;
    alone.sequence = false;
    const auto ranks = static_cast<double>(frame.tensor * frame.context);
    ModelUse use = floor_of(alone).use;
    change_all(use, [&](StageUse& part) {
      for (std::size_t i = 0; i < StageUse::kPeak; ++i) part[i] /= ranks;
    });
    use.message_bytes /= ranks;
    out = std::min(out, of_floor(split, use));
  }
  return out;
}

double Bounds::least(const PlanChoice& choice, const ModelUse& use, double sums) {
  const std::int64_t p = choice.pipeline, m = space_.micro_batches(choice);
  PipelineShape shape;
  if (p > 1) {
    const auto [found, fresh] =
        shapes_.try_emplace({choice.schedule, p, choice.chunks, std::min(m, 3 * p + m % p)});
    if (fresh) found->second = shape_of(choice.schedule, p, choice.chunks, m);
    shape = found->second;
  }
  shape.ranks = choice.devices() / p;
  return least_seconds(use, shape, stacks_, m, machine_, sums);
}

/// Few sizes serve all.
std::int64_t Bounds::larger(std::int64_t size) const {
  const std::int64_t classes[] = {1, 4, 64};
  for (const std::int64_t each : classes)
    if (size <= each) return std::min(each, base_.global_batch_size);
  return size;
}

/// Of so large a micro-batch, of which few sizes serve all; where backward is in one part, unless
/// it has its own schedule; in stages; of three micro-batches or more.
bool Bounds::read_like(const PlanChoice& choice, std::int64_t size, bool own_schedule,
                       ModelUse& out) {
  PlanChoice like = choice;
  if (!own_schedule) {
    like.schedule = PlanChoice().schedule;
    like.chunks = 1;
  }
  like.micro_batch_size = size;
  like.pipeline = std::max<std::int64_t>(choice.pipeline, 2);
  const std::int64_t m = space_.micro_batches(choice), some = std::max<std::int64_t>(m, 3);
  double times = static_cast<double>(choice.micro_batch_size) / static_cast<double>(size);
  if (!read(like, some, out)) {
    like.pipeline = choice.pipeline;
    if (!read(like, some, out)) return false;
  } else if (choice.pipeline == 1) {
    times *= kInOneStage;
    change_all(out, [](StageUse& part) { part[StageUse::kUpdate] *= kInOneStage; });
  }
  if (m < some) {
    take_cheapest_micro_batch(out);
    change_all(out, [&](StageUse& part) { add_up_less(part, like, kAddedUp, kKernelsLess); });
  }
  if (times != 1) out = out.with_loop(times);
  return true;
}

double Bounds::of_any_zero(const PlanChoice& scheduled) {
  PlanChoice plain = space_.starts(scheduled).front();
  if (!space_.zero_given()) plain.zero = plain.shard_size = 0;
  ModelUse use;
  if (!read_like(plain, larger(plain.micro_batch_size), false, use)) return kNever;
  const bool several = plain.data > 1 && !space_.zero_given();
  double share = kSumParts + kGatherParts;
  for (const PlanChoice& start : space_.starts(scheduled))
    if (start.shard_size > 0) share = std::min(share, groups_share(start));
  take_cheapest_micro_batch(use);
  change_all(use, [&](StageUse& part) {
    if (several)
      share_out(part, plain.data, true, 0, share * sums_of(part));
    else
      part[StageUse::kDataLast] = 0;
  });
  // At some time, once.
  return least(plain, use, several ? 1 / static_cast<double>(space_.micro_batches(plain)) : 0);
}

/// Where fewer gradients are added up: without as many times the states' bytes, and kernels.
void Bounds::add_up_less(StageUse& use, const PlanChoice& choice, double times,
                         double kernels) const {
  const auto ranks = static_cast<double>(choice.zero > 0 ? choice.data : 1);
  const double bytes = times * ranks * std::max(0.0, use[StageUse::kMoments]);
  const double most = 1e-9 * bytes / machine_.device.memory_gigabytes_per_s +
                      kernels * 1e-6 * machine_.device.start_microseconds;
  for (std::size_t i = StageUse::kBackward; i < StageUse::kBegin; ++i)
    if (use[i] > 0) use[i] = std::max(kFewMicroBatches * use[i], use[i] - most);
}

/// What is sent among groups that share out a state, as a part of what would be sent among all.
double Bounds::groups_share(const PlanChoice& choice) const {
  const std::string& order = choice.order.empty() ? base_.parallel.rank_order : choice.order;
  std::int64_t inside = 1;
  const std::vector<std::string> axes = split(order, ',');
  for (std::size_t i = axes.size(); i-- > 0 && axes[i] != kDataAxis;)
    inside *= axes[i] == kTensorAxis ? choice.tensor : axes[i] == kContextAxis ? choice.context : 1;
  const std::int64_t group = choice.shard_size, groups = choice.data / group;
  const auto seconds = [&](std::int64_t stride, std::int64_t size, double bytes) {
    const AxisSpan span{machine_.level_of(stride * size), stride, size};
    const auto n = static_cast<double>(size);
    return machine_.move_seconds({span}, bytes * (n - 1) / n, 0);
  };
  constexpr double kBytes = 1e9;
  return seconds(inside * group, groups, kBytes / static_cast<double>(group)) /
         seconds(inside, choice.data, kBytes);
}

/// False: it does not compile. `sums`: as of least_seconds.
bool Bounds::read_zero(const PlanChoice& start, bool own_schedule, ModelUse& use, double& sums) {
  PlanChoice plain = start;
  if (!space_.zero_given()) plain.zero = plain.shard_size = 0;
  if (!read_like(plain, plain.micro_batch_size, own_schedule, use)) return false;
  sums = 0;
  if (start.zero == plain.zero) return true;
  const bool groups = start.shard_size > 0, each = start.zero >= 2;
  const bool overlap = machine_.device.overlap;
  const double share = groups ? groups_share(start) : 0;
  if (each) take_cheapest_micro_batch(use);
  change_all(use, [&](StageUse& part) {
    if (each && !groups) add_up_less(part, plain, kShardsAddedUp, 0);
    const double all = sums_of(part), late = part[StageUse::kDataOnce];
    if (groups)
      share_out(part, start.data, overlap, 0, share * all);
    else if (start.zero == 1)
      share_out(part, start.data, overlap, kGatherParts * all + kSumParts * late,
                kSumParts * part[StageUse::kDataLast]);
    else if (start.zero == 2)
      share_out(part, start.data, overlap, kGatherParts * all, kSumParts * all);
    else
      share_out(part, start.data, overlap, 0, (kSumParts + kGatherParts) * all);
  });
  // Of groups all that is known is that they sum once.
  if (each) sums = groups ? 1 / static_cast<double>(space_.micro_batches(start)) : 1;
  return true;
}

double Bounds::of_like(const PlanChoice& start) {
  ModelUse use;
  double sums = 0;
  return read_zero(start, false, use, sums) ? least(start, use, sums) : kNever;
}

double Bounds::of_like_played(const PlanChoice& start, Composer& composer) {
  if (start.pipeline == 1) return 0;
  ModelUse use;
  double sums = 0;
  if (!read_zero(start, true, use, sums)) return kNever;
  if (sums > 0) change_all(use, [](StageUse& part) { part[StageUse::kDataLast] = 0; });
  return played(start, use, composer);
}

double Bounds::of_level(const PlanChoice& start) {
  ModelUse use;
  return read_like(start, start.micro_batch_size, false, use) ? least(start, use, 0) : kNever;
}

double Bounds::played(const PlanChoice& start, const ModelUse& use, Composer& composer) {
  const std::int64_t m = space_.micro_batches(start);
  const Composition free = composer.compose(start, {&use, &use}, m, {});
  if (free.seconds == kNever || free.seconds == 0) return kNever;
  // Several chunks are laid out without looking at memory. If they are even here, they are even
  // below, where layers take no less; uneven ones may be cut elsewhere there.
  const bool even =
      std::ranges::adjacent_find(free.layout, std::not_equal_to()) == free.layout.end();
  const bool alike = start.chunks > 1 && m >= start.pipeline && even;
  return (alike ? 1 : kOfFree) * free.seconds;
}

double Bounds::of_choice(const PlanChoice& start, Composer& composer) {
  ModelUse use;
  if (!read(start, space_.micro_batches(start), use)) return kNever;
  const double low = least(start, use, 0);
  return start.pipeline == 1 ? low : std::max(low, played(start, use, composer));
}

}  // namespace tessera
