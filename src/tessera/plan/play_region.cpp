#include "tessera/plan/play_region.h"

#include <algorithm>
#include <set>

#include "tessera/base/index.h"
#include "tessera/plan/price.h"

namespace tessera {

namespace {

constexpr unsigned kToHost = 1U << 5, kFromHost = 1U << 6;

/// The axes along which the batch is cut.
std::set<std::string, std::less<>> batch_axes(const ProgramPlan& program) {
  std::set<std::string, std::less<>> out;
  for (const NamedTensor& input : program.batch) {
    const Sharding& sharding = input.placement->sharding;
    if (sharding.ndim() > 0) out.insert(sharding.dims[0].begin(), sharding.dims[0].end());
  }
  return out;
}

TimePart part_of(const Call& call, const std::set<std::string, std::less<>>& data) {
  if (call.copied_bytes > 0) return TimePart::HostCopies;
  if (!call.transfer)
    return call.op != nullptr && call.op->product != nullptr ? TimePart::Products
                                                             : TimePart::OtherKernels;
  if (call.transfer->is_message()) return TimePart::Messages;
  for (const std::string& axis : call.transfer->axes) {
    const std::optional<AxisPart> part = parse_axis_part(axis);
    if (data.contains(axis) || (part && data.contains(part->axis))) return TimePart::Data;
  }
  const CollectiveKind kind = call.transfer->collective.kind;
  const bool sums = kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
  return sums ? TimePart::Inner : TimePart::Inter;
}

double weight_of(TimePart part, const CostWeights& weights) {
  switch (part) {
    case TimePart::Products:
    case TimePart::OtherKernels: return weights.alpha;
    case TimePart::Inner: return weights.beta1;
    case TimePart::Inter:
    case TimePart::Messages: return weights.beta2;
    case TimePart::Data: return weights.gamma;
    case TimePart::HostCopies: return 1;
  }
  return 1;
}

unsigned links_of(const Call& call, const Mesh& mesh, const Machine& machine) {
  if (call.transfer) return machine.levels_of(spans_of(mesh, call.transfer->axes));
  return !call.outs.empty() && call.outs[0].memory == Memory::Host ? kToHost : kFromHost;
}

}  // namespace

std::string_view to_text(TimePart part) {
  constexpr std::array<std::string_view, kNumTimeParts> kNames = {
      "products", "other kernels", "inner", "inter", "data", "messages", "host copies"};
  return kNames[static_cast<std::size_t>(part)];
}

RegionPlayer::RegionPlayer(const RegionPlan& region, const ProgramPlan& program, const Mesh& mesh,
                           const Machine& machine)
    : microbatches_(program.microbatches),
      overlap_(machine.device.overlap),
      in_loop_(in_loop(region.kind)) {
  const std::set<std::string, std::less<>> data = batch_axes(program);
  std::set<std::int32_t> messages;  // tickets of those that are received
  told_ = region.calls.size();
  for (const Call& call : region.calls) {
    const TimePart part = part_of(call, data);
    Step step;
    step.when = call.when;
    step.ticket = call.ticket;
    step.part = static_cast<std::size_t>(part);
    if (call.kernel || call.is_start())
      step.seconds = price(call, mesh, machine) * weight_of(part, machine.weights);
    if (!call.kernel) step.kind = call.is_start() ? Step::Kind::Start : Step::Kind::Wait;
    if (step.kind == Step::Kind::Start && part == TimePart::Messages) {
      if (call.transfer->collective.kind == CollectiveKind::Recv) messages.insert(call.ticket);
      step.ticket = -1;
    } else if (step.kind == Step::Kind::Start) {
      step.links = links_of(call, mesh, machine);
    }
    if (step.kind == Step::Kind::Wait && messages.contains(call.ticket) && told_ > steps_.size())
      told_ = steps_.size();
    steps_.push_back(step);
  }
}

void RegionPlayer::play(StageClock& clock, std::int64_t microbatch) const {
  play(clock, microbatch, 0, steps_.size());
}

void RegionPlayer::play(StageClock& clock, std::int64_t microbatch, std::size_t begin,
                        std::size_t end) const {
  for (std::size_t i = begin; i < end; ++i) {
    if (!in_loop_ || runs_in(steps_[i].when, microbatch, microbatches_)) run(clock, steps_[i]);
  }
}

void RegionPlayer::run(StageClock& clock, const Step& step) const {
  switch (step.kind) {
    case Step::Kind::Kernel:
      clock.now += step.seconds;
      clock.exposed[step.part] += step.seconds;
      clock.whole[step.part] += step.seconds;
      return;
    case Step::Kind::Start: {
      if (step.ticket < 0) return;
      clock.whole[step.part] += step.seconds;
      double begin = clock.now;
      for (std::size_t link = 0; link < clock.free.size(); ++link) {
        if ((step.links >> link & 1U) != 0) begin = std::max(begin, clock.free[link]);
      }
      const double end = begin + step.seconds;
      for (std::size_t link = 0; link < clock.free.size() && overlap_; ++link) {
        if ((step.links >> link & 1U) != 0) clock.free[link] = end;
      }
      clock.open[step.ticket] = {overlap_ ? end : step.seconds, step.part};
      return;
    }
    case Step::Kind::Wait: {
      const auto found = clock.open.find(step.ticket);
      if (found == clock.open.end()) return;  // of a message
      const OpenTransfer& transfer = found->second;
      const double waits = overlap_ ? std::max(0.0, transfer.end - clock.now) : transfer.end;
      clock.now += waits;
      clock.exposed[transfer.part] += waits;
      clock.open.erase(found);
    }
  }
}

}  // namespace tessera
