#include "tessera/planner/stage_use.h"

#include <algorithm>
#include <map>

#include "tessera/base/index.h"
#include "tessera/models/parallel.h"
#include "tessera/plan/predict.h"
#include "tessera/plan/price.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

std::size_t first_of(RegionKind region) {
  return region == RegionKind::Forward    ? StageUse::kForward
         : region == RegionKind::Backward ? StageUse::kBackward
                                          : StageUse::kWeights;
}

StageUse::Part kind_of(const Call& call, RegionKind region) {
  if (call.copied_bytes > 0) return StageUse::kCopies;
  if (call.transfer) {
    const auto& axes = call.transfer->axes;
    // Gradients are summed along all axes at once that split what they come from. Where all data
    // parallel ranks share out the experts, that is ep, along which tokens move in each micro-batch.
    const bool of_step = !in_loop(region) || call.when != When::Always;
    const bool data = std::ranges::any_of(axes, [&](const std::string& axis) {
      return axis == kDataAxis || axis == kDataOuterAxis || (axis == kExpertAxis && of_step);
    });
    return data ? StageUse::kData : StageUse::kInner;
  }
  return call.op != nullptr && call.op->product != nullptr ? StageUse::kProducts
                                                           : StageUse::kKernels;
}

}  // namespace

StageUse& StageUse::operator+=(const StageUse& other) {
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] += other.parts[i];
  return *this;
}

StageUse operator-(const StageUse& a, const StageUse& b) { return a + (-1.0 * b); }

StageUse operator*(double times, StageUse a) {
  for (double& part : a.parts) part *= times;
  return a;
}

double StageUse::seconds(RegionKind region, std::int64_t k, std::int64_t n) const {
  return parts[first_of(region) + (k + 1 == n ? 2 : k == 0 ? 0 : 1)];
}

double StageUse::micro_batch_seconds() const {
  return parts[kForward + 1] + parts[kBackward + 1] + parts[kWeights + 1];
}

namespace {

/// As if nothing ran beside anything.
void add_kinds(const Plan& plan, const Machine& machine, StageUse& out) {
  const ProgramPlan& program = plan.program(kTrainProgram);
  for (const RegionPlan& region : program.regions) {
    for (const Call& call : region.calls) {
      const bool always = call.when == When::Always || call.when == When::Later;
      if (in_loop(region.kind) && always)
        out[kind_of(call, region.kind)] += price(call, plan.mesh, machine);
      else if (kind_of(call, region.kind) == StageUse::kData)
        out[in_loop(region.kind) ? StageUse::kDataLast : StageUse::kDataOnce] +=
            price(call, plan.mesh, machine);
    }
  }
}

/// What regions of the loop leave in the work section for later ones.
class Handed {
 public:
  explicit Handed(const ProgramPlan& program) {
    for (const RegionPlan& region : program.regions) {
      if (region.kind == RegionKind::Forward) write(region, forward_);
      if (region.kind == RegionKind::Backward) write(region, backward_);
    }
    for (const RegionPlan& region : program.regions) {
      if (region.kind == RegionKind::Backward) read(region, {&forward_});
      if (region.kind == RegionKind::Weights) read(region, {&backward_, &forward_});
    }
  }

  void add_to(StageUse& use) const {
    for (const auto& [begin, value] : forward_)
      use[value.last == RegionKind::Weights ? StageUse::kKeptLong : StageUse::kKept] +=
          value.taken();
    for (const auto& [begin, value] : backward_) use[StageUse::kHeld] += value.taken();
  }

 private:
  struct Value {
    std::int64_t bytes = 0;
    RegionKind last = RegionKind::Begin;  // that reads it; Begin: none
    double taken() const {
      return last == RegionKind::Begin ? 0 : static_cast<double>(aligned(bytes));
    }
  };
  using Values = std::map<std::int64_t, Value>;  // by offset

  static bool counts(const Place& place) {
    return place.section == Place::Section::Work && place.memory == Memory::Device;
  }
  static void write(const RegionPlan& region, Values& to) {
    for (const Call& call : region.calls) {
      for (std::size_t i = 0; i < call.outs.size() && i < call.types->outs.size(); ++i) {
        if (!counts(call.outs[i])) continue;
        Value& value = to[call.outs[i].offset];
        value.bytes = std::max(value.bytes, call.types->outs[i].bytes());
      }
    }
  }
  static Value* find(Values& among, std::int64_t offset) {
    auto next = among.upper_bound(offset);
    if (next == among.begin()) return nullptr;
    --next;
    return offset < next->first + next->second.bytes ? &next->second : nullptr;
  }
  /// What it has not written itself before.
  static void read(const RegionPlan& region, const std::vector<Values*>& from) {
    Values mine;
    for (const Call& call : region.calls) {
      for (std::size_t i = 0; i < call.ins.size(); ++i) {
        const Place& place = call.ins[i];
        if (!counts(place) || find(mine, place.offset) != nullptr) continue;
        for (Values* values : from) {
          Value* value = find(*values, place.offset);
          if (value == nullptr) continue;
          value->last = region.kind;
          break;
        }
      }
      for (std::size_t i = 0; i < call.outs.size() && i < call.types->outs.size(); ++i) {
        if (counts(call.outs[i])) mine[call.outs[i].offset].bytes = call.types->outs[i].bytes();
      }
    }
  }

  Values forward_, backward_;
};

void add_bytes(const Plan& plan, const InFlight& in_flight, StageUse& out) {
  const ProgramPlan& program = plan.program(kTrainProgram);
  for (const BlockUse& block : program.blocks)
    out[StageUse::kHostKept] += static_cast<double>(block.kept_bytes.host);
  const bool splits = std::ranges::any_of(
      program.regions, [](const RegionPlan& region) { return region.kind == RegionKind::Weights; });
  if (splits)
    Handed(program).add_to(out);
  else
    for (const BlockUse& block : program.blocks)
      out[StageUse::kKept] += static_cast<double>(block.kept_bytes.device);
  for (const StatePlan& state : plan.states) {
    const Role role = state.state.role;
    const bool moment =
        !is_of_model(role) && role != Role::Cache && role != Role::Copy && role != Role::Reference;
    if (moment && plan.has(state) && state.place.memory == Memory::Device)
      out[StageUse::kMoments] += static_cast<double>(aligned(state.type.bytes()));
  }
  const auto samples = static_cast<double>(sample_bytes_of(plan) * program.microbatches);
  out[StageUse::kPeak] =
      static_cast<double>(plan.peak_bytes()) - samples - in_flight.more_bytes(out);
  out[StageUse::kHost] = static_cast<double>(plan.host_bytes()) - in_flight.more_host_bytes(out);
}

}  // namespace

std::vector<StageUse> stage_seconds_of(const std::vector<Plan>& stages, const Pipeline& pipeline,
                                       const Machine& machine) {
  std::vector<const Plan*> plans;
  for (const Plan& plan : stages) plans.push_back(&plan);
  const PlayOptions prices = prices_of(plans, kTrainProgram, pipeline, machine);
  const std::int64_t n = pipeline.microbatches();
  std::vector<StageUse> out(stages.size());
  for (const RegionSeconds& region : predict(plans, kTrainProgram, pipeline, machine).regions) {
    StageUse& use = out[at(region.stage)];
    if (!in_loop(region.region)) {
      use[region.region == RegionKind::Begin ? StageUse::kBegin : StageUse::kUpdate] +=
          region.seconds;
      continue;
    }
    const std::size_t first = first_of(region.region);
    for (const std::int64_t k : {std::int64_t{0}, n / 2, n - 1})
      use[first + (k + 1 == n ? 2
                   : k == 0   ? 0
                              : 1)] = prices.cost({region.region, region.chunk, k});
    // Without one between them what stands for a micro-batch is their mean.
    if (n == 1) use[first] = use[first + 2];
    if (n <= 2) use[first + 1] = (use[first] + use[first + 2]) / 2;
  }
  for (std::size_t s = 0; s < stages.size(); ++s) add_kinds(stages[s], machine, out[s]);
  return out;
}

std::vector<StageUse> stage_bytes_of(const std::vector<Plan>& stages, const Pipeline& pipeline) {
  std::vector<StageUse> out(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s)
    add_bytes(stages[s], in_flight_of(pipeline, static_cast<int>(s)), out[s]);
  return out;
}

void keep_seconds(Plan& plan) {
  std::shared_ptr<const Kernel> any;
  for (ProgramPlan& program : plan.programs) {
    for (RegionPlan& region : program.regions) {
      for (Call& call : region.calls) {
        if (!call.kernel) continue;  // a transfer is told by its places
        if (!any) any = call.kernel;
        call.kernel = any;
        call.ins = {};
        call.outs = {};
      }
      region.calls.shrink_to_fit();
    }
    program.actions = {};
    program.blocks = {};
  }
  plan.states = {};
  plan.constants = {};
}

double InFlight::more_bytes(const StageUse& use) const {
  return (kept - 1) * use[StageUse::kKept] + (kept_long - 1) * use[StageUse::kKeptLong] +
         (held - 1) * use[StageUse::kHeld];
}

double InFlight::more_host_bytes(const StageUse& use) const {
  return (kept_long - 1) * use[StageUse::kHostKept];
}

InFlight in_flight_of(const Pipeline& pipeline, int chunk) {
  const auto alive = [&](RegionKind first, RegionKind last) {
    return static_cast<double>(pipeline.alive(chunk, first, last));
  };
  const RegionKind last = pipeline.schedule().last();
  InFlight out{alive(RegionKind::Forward, RegionKind::Backward), alive(RegionKind::Forward, last),
               1};
  if (last == RegionKind::Weights) out.held = alive(RegionKind::Backward, last);
  return out;
}

void take_data_ranks(StageUse& use, std::int64_t from, std::int64_t data, bool shared) {
  if (from == data) return;
  const auto a = static_cast<double>(from), b = static_cast<double>(data);
  if (!shared) return;
  const double moved = use[StageUse::kDataOnce];
  const double other = std::max(0.0, use[StageUse::kUpdate] - moved);
  use[StageUse::kUpdate] = other * a / b + moved;
  use[StageUse::kPeak] -= use[StageUse::kMoments] * (1 - a / b);
  use[StageUse::kMoments] *= a / b;
}

std::int64_t sample_bytes_of(const Plan& plan) {
  const ProgramPlan& program = plan.program(kTrainProgram);
  std::int64_t out = 0;
  for (const NamedTensor& each : program.batch) out += aligned(each.type.bytes());
  return out / program.microbatches;
}

}  // namespace tessera
