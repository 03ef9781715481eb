#include "tessera/planner/space.h"

#include <algorithm>
#include <set>

#include "tessera/base/divisors.h"
#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/schedule/schedule.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/memory_choice.h"

namespace tessera {

namespace {

std::int64_t zero_of(const ParallelConfig& parallel) {
  return parallel.shard_parameters  ? 3
         : parallel.shard_gradients ? 2
         : parallel.shard_optimizer ? 1
                                    : 0;
}

std::vector<std::int64_t> up_to(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 1; i <= n; ++i) out.push_back(i);
  return out;
}

}  // namespace

std::vector<std::string> orders_of(const PlanChoice& choice) {
  struct Named {
    std::string_view name;
    std::int64_t size;
  };
  std::vector<Named> axes = {
      {kDataAxis, choice.data}, {kContextAxis, choice.context}, {kTensorAxis, choice.tensor}};
  std::vector<int> at = {0, 1, 2};
  std::vector<std::string> out;
  std::set<std::string> known;
  do {
    std::string all, split;
    for (const int i : at) {
      const Named& axis = axes[static_cast<std::size_t>(i)];
      all += text(all.empty() ? "" : ",", axis.name);
      if (axis.size > 1) split += text(axis.name, ",");
    }
    if (known.insert(split).second) out.push_back(out.empty() ? "" : all);
  } while (std::next_permutation(at.begin(), at.end()));
  return out;
}

Space::Space(const RunConfig& base, std::int64_t devices, bool precision)
    : base_(base),
      devices_(devices),
      layers_(layer_count(base.model)),
      zero_(zero_of(base.parallel)),
      precision_(precision && !is_given("bf16", base) && !is_given("fp16", base)) {
  const ParallelConfig& parallel = base.parallel;
  if (given("pipeline-layout") && !parallel.layout.empty()) layout_ = parse_layout(parallel.layout);
  if (given("recompute-layers") && parallel.recompute_layers != "all")
    given_layers_ = parallel.recompute_layers;
}

/// What does nothing without ZeRO is told.
bool Space::wants_zero() const {
  return (given("optimizer-shard-size") && base_.parallel.shard_size > 0) ||
         base_.parallel.shard_threshold > 0;
}

Recompute Space::less(Recompute what) const {
  if (recompute_given() && given_layers_.empty()) return what;
  return what > Recompute::Elementwise ? Recompute::Elementwise : Recompute::None;
}

bool Space::legal(const PlanChoice& choice) const {
  ParallelConfig parallel = parallel_of(base_, choice);
  parallel.recompute_layers = "all";
  parallel.machine = {};
  parallel.shard_size = 0;
  parallel.shard_threshold = 0;
  parallel.repeat = 1;
  return problems(parallel, base_.model).empty();
}

/// What is told of stages or of ZeRO's groups, and the sizes.
bool Space::goes_with_given(const PlanChoice& frame) const {
  const ParallelConfig &asked = base_.parallel, usual;
  if (wants_zero() && zero_given() && zero_ == 0) return false;
  const std::int64_t group = given("optimizer-shard-size") ? asked.shard_size : 0;
  if (group > 0 && (frame.data % group != 0 || group % frame.experts != 0)) return false;
  if (frame.pipeline > 1) return layout_.empty() || std::ssize(layout_) % frame.pipeline == 0;
  const auto one = [&](std::string_view knob, bool of_one) { return !given(knob) || of_one; };
  return one("pipeline-layout", layout_.empty()) &&
         one("virtual-pipeline-stages", asked.virtual_stages == 0) &&
         one("pipeline-schedule", asked.schedule == usual.schedule);
}

/// Over how many of so many data parallel ranks the experts of a layer may be shared out.
std::vector<std::int64_t> Space::experts_of(std::int64_t data) const {
  const ParallelConfig& asked = base_.parallel;
  if (given("expert-model-parallel-size")) return {asked.experts};
  if (!has_experts(base_.model)) return {1};
  const bool groups = given("optimizer-shard-size") && asked.shard_size > 0;
  std::vector<std::int64_t> out = divisors_of(groups ? asked.shard_size : data);
  std::erase_if(out, [&](std::int64_t ranks) { return ranks > base_.model.experts.experts; });
  return out;
}

/// Whether samples whose tokens balance experts together lie in one micro-batch.
bool Space::holds_groups(const PlanChoice& split) const {
  const std::int64_t samples = has_experts(base_.model) ? base_.model.experts.samples : 1,
                     step = split.micro_batch_size * split.data;
  if (samples < 2) return true;
  const std::int64_t together =
      step >= base_.global_batch_size ? step : split.micro_batch_size * split.experts;
  return together % samples == 0 && step % samples == 0;
}

std::vector<PlanChoice> Space::frames() const {
  const ModelConfig& model = base_.model;
  const ParallelConfig& asked = base_.parallel;
  const auto one_or = [&](std::string_view field, std::int64_t value,
                          std::vector<std::int64_t> all) {
    // A data parallel size of 0 leaves it open.
    return given(field) && value > 0 ? std::vector<std::int64_t>{value} : std::move(all);
  };
  const bool all_devices = given("devices");
  std::vector<PlanChoice> out;
  for (const std::int64_t tensor : one_or("tensor-model-parallel-size", asked.tensor,
                                          divisors_of(std::max<std::int64_t>(model.heads, 1))))
    for (const std::int64_t context : one_or("context-parallel-size", asked.context,
                                             divisors_of(std::min(model.context, model.source()))))
      for (const std::int64_t data : one_or("data-parallel-size", base_.data_parallel,
                                            divisors_of(base_.global_batch_size))) {
        const std::int64_t inner = tensor * context * data;
        if (inner > devices_) continue;
        for (const std::int64_t pipeline : one_or("pipeline-model-parallel-size", asked.pipeline,
                                                  up_to(std::min(devices_ / inner, layers_ + 2)))) {
          PlanChoice frame{
              .data = data, .tensor = tensor, .context = context, .pipeline = pipeline};
          if (frame.devices() > devices_ || (all_devices && frame.devices() != asked.devices))
            continue;
          for (const std::int64_t experts : experts_of(data)) {
            frame.experts = experts;
            if (legal(frame) && goes_with_given(frame)) out.push_back(frame);
          }
        }
      }
  return out;
}

std::vector<PlanChoice> Space::splits(const PlanChoice& frame) const {
  const std::int64_t samples = base_.global_batch_size / frame.data;
  std::vector<Floats> floats = {Floats::AsAsked};
  if (precision_) floats = {Floats::F32, Floats::BF16, Floats::F16};
  std::vector<PlanChoice> out;
  for (const Floats each : floats) {
    for (const std::int64_t size : divisors_of(samples)) {
      if (given("micro-batch-size") && size != base_.micro_batch_size) continue;
      for (const bool sequence : {true, false}) {
        if (given("sequence-parallel") ? sequence != base_.parallel.sequence
                                       : sequence && frame.tensor == 1)
          continue;
        PlanChoice split = frame;
        split.floats = each;
        split.micro_batch_size = size;
        split.sequence = sequence;
        if (holds_groups(split)) out.push_back(split);
      }
    }
  }
  return out;
}

/// How many each stage may have: as many as are told, or else the fewest, what makes them even, and
/// powers of two.
std::vector<std::int64_t> Space::chunks_of(const ScheduleDef& schedule, std::int64_t stages) const {
  const std::int64_t least = schedule.least_chunks,
                     most = schedule.most_chunks > 0 ? schedule.most_chunks : most_chunks(stages);
  const std::int64_t asked = given("virtual-pipeline-stages") ? base_.parallel.virtual_stages : 0;
  const std::int64_t of_layout = std::ssize(layout_) / stages;
  std::vector<std::int64_t> out;
  for (std::int64_t chunks = least; chunks <= most; ++chunks) {
    if ((asked > 0 && chunks != asked) || (of_layout > 0 && chunks != of_layout)) continue;
    const bool even = layers_ % (stages * chunks) == 0, power = (chunks & (chunks - 1)) == 0;
    if (asked > 0 || of_layout > 0 || chunks == least || even || power) out.push_back(chunks);
  }
  return out;
}

std::vector<PlanChoice> Space::schedules(const PlanChoice& split) const {
  std::vector<PlanChoice> out;
  std::vector<std::string> orders = {""};
  if (!given("rank-order")) orders = orders_of(split);
  const auto add = [&](std::string_view name, std::int64_t chunks) {
    PlanChoice next = split;
    next.schedule = name;
    next.chunks = chunks;
    if (split.pipeline > 1) next.layout = layout_;
    if (!legal(next)) return;
    for (const std::string& order : orders) {
      next.order = order;
      out.push_back(next);
    }
  };
  if (split.pipeline == 1) {
    add(split.schedule, 1);
    return out;
  }
  for (const ScheduleDef& schedule : tessera::schedules()) {
    if (given("pipeline-schedule") ? schedule.name != base_.parallel.schedule
                                   : !schedule.dominated_by.empty())
      continue;
    for (const std::int64_t chunks : chunks_of(schedule, split.pipeline))
      add(schedule.name, chunks);
  }
  return out;
}

std::vector<PlanChoice> Space::starts(const PlanChoice& scheduled) const {
  PlanChoice first = scheduled;
  first.recompute = recompute_given() ? base_.parallel.recompute : Recompute::Elementwise;
  first.given_layers = given_layers_;
  first.offload = base_.parallel.offload;
  first.shard_size = base_.parallel.shard_size;
  first.zero = zero_given() ? zero_ : wants_zero() ? 1 : 0;
  std::vector<PlanChoice> out = {first};
  if (zero_given() || first.data == 1) return out;
  for (first.zero = 1; first.zero <= 3; ++first.zero) out.push_back(first);
  return out;
}

std::vector<PlanChoice> Space::leaner(const PlanChoice& choice) const {
  std::vector<PlanChoice> out;
  const auto add = [&](auto change) {
    PlanChoice next = choice;
    change(next);
    out.push_back(next);
  };
  if (!zero_given() && !given("optimizer-shard-size") && choice.zero >= 1 && choice.zero < 3) {
    // Those that share a server may keep among themselves what moves in every micro-batch.
    const std::int64_t server = base_.parallel.machine.devices(Level::Socket),
                       group = server / (choice.tensor * choice.context);
    if (group > 1 && group < choice.data && choice.data % group == 0 && group % choice.experts == 0)
      add([&](PlanChoice& c) { ++c.zero, c.shard_size = group; });
  }
  for (const Recompute what : {Recompute::Selective, Recompute::Full})
    if (what > choice.recompute && !recompute_given())
      add([&](PlanChoice& c) { c.recompute = what; });
  for (const OffloadKind& kind : kOffloadKinds) {
    if (host_pool_of(base_) == HostPool::SameMemory) break;
    const bool device_given = base_.given.contains("remote-device");
    if (choice.offload.*kind.offloads || given(kind.field) || device_given) continue;
    add([&](PlanChoice& c) { c.offload.*kind.offloads = true; });
  }
  return out;
}

}  // namespace tessera
