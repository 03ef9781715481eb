#include "tessera/plan/price.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tessera/base/index.h"

namespace tessera {

namespace {

bool is_message(const Call& call) { return call.transfer && call.transfer->is_message(); }

/// Of a region: seconds of the calls that run in every micro-batch, in the first, in later ones and
/// in the last.
using RegionPrice = std::array<double, 4>;

std::map<std::pair<RegionKind, int>, RegionPrice> region_prices(
    const std::vector<const ProgramPlan*>& stages, const Mesh& mesh, const Machine& machine) {
  std::map<std::pair<RegionKind, int>, RegionPrice> out;
  for (const ProgramPlan* stage : stages) {
    for (const RegionPlan& region : stage->regions) {
      if (!in_loop(region.kind)) continue;
      RegionPrice& sums = out[{region.kind, region.chunk}];
      for (const Call& call : region.calls)
        sums[static_cast<std::size_t>(call.when)] += price(call, mesh, machine);
    }
  }
  return out;
}

/// In how many of so many micro-batches a call runs.
std::int64_t runs_of(When when, std::int64_t microbatches) {
  return when == When::Always ? microbatches : when == When::Later ? microbatches - 1 : 1;
}

/// The least places for what is sent in the loop.
std::int64_t send_slots(const std::vector<const ProgramPlan*>& stages) {
  std::int64_t out = 0;
  for (const ProgramPlan* stage : stages) {
    for (const RegionPlan& region : stage->regions) {
      for (const Call& call : region.calls) {
        const bool sends = in_loop(region.kind) && is_message(call) &&
                           call.transfer->collective.kind == CollectiveKind::Send;
        if (sends) out = out == 0 ? call.tickets : std::min<std::int64_t>(out, call.tickets);
      }
    }
  }
  return out;
}

}  // namespace

double price(const Call& call, const Mesh& mesh, const Machine& machine) {
  if (is_message(call)) return 0;
  if (call.copied_bytes > 0) return machine.copy_seconds(static_cast<double>(call.copied_bytes));
  if (!call.transfer)
    return call.kernel ? machine.kernel_seconds({call.flops, call.bytes}) : 0;  // none: a wait
  const Transfer& transfer = *call.transfer;
  const int n = transfer.group.size();
  const double steps = transfer.from >= 0 ? 1 : std::ceil(std::log2(std::max(n, 2)));
  return machine.move_seconds(spans_of(mesh, transfer.axes),
                              static_cast<double>(bytes_sent(transfer.collective, n)), steps);
}

double step_seconds(const ProgramPlan& program, const Mesh& mesh, const Machine& machine) {
  double out = 0;
  for (const RegionPlan& region : program.regions) {
    for (const Call& call : region.calls) {
      const std::int64_t runs = in_loop(region.kind) ? runs_of(call.when, program.microbatches) : 1;
      out += static_cast<double>(runs) * price(call, mesh, machine);
    }
  }
  return out;
}

PlayOptions prices_of(const std::vector<const ProgramPlan*>& stages, const Pipeline& pipeline,
                      const Mesh& mesh, const Machine& machine) {
  PlayOptions out;
  const std::int64_t microbatches = pipeline.microbatches();
  out.cost = [prices = region_prices(stages, mesh, machine), microbatches](const Action& action) {
    const RegionPrice& sums = prices.at({action.region, action.chunk});
    double seconds = 0;
    for (std::size_t when = 0; when < sums.size(); ++when) {
      if (runs_in(static_cast<When>(when), action.microbatch, microbatches)) seconds += sums[when];
    }
    return seconds;
  };
  const std::int64_t ranks = mesh.ranks();
  for (const Edge& edge : pipeline.edges()) {
    const auto& told = stages[0]->edges;
    const auto found = std::ranges::find(told, edge, &EdgeBytes::edge);
    const std::int64_t from = pipeline.stage_of(edge.giver) * ranks,
                       to = pipeline.stage_of(edge.taker) * ranks;
    out.sends.push_back(
        found == told.end()
            ? 0
            : machine.message_seconds(from, to, ranks, static_cast<double>(found->bytes)));
  }
  out.ahead = true;
  out.send_slots = send_slots(stages);
  return out;
}

}  // namespace tessera
