#include "tessera/plan/traffic.h"

#include <algorithm>
#include <tuple>

#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/ir/blocks.h"

namespace tessera {

namespace {

constexpr std::string_view kSent = "bytes that a device sends";

/// Hands each transfer of one run to `take`, with how often it is called.
template <typename Take>
void each_transfer(const ProgramPlan& program, const Take& take) {
  for (const RegionPlan& region : program.regions) {
    for (const Call& call : region.calls) {
      if (!call.transfer) continue;
      const auto runs =
          std::count_if(program.actions.begin(), program.actions.end(), [&](const Action& action) {
            return region.runs_in(action) && program.runs(call, action);
          });
      take(region.kind, call, static_cast<std::int64_t>(runs));
    }
  }
}

/// "layers.10" behind "layers.9".
std::tuple<std::size_t, std::string_view> order_of(const std::string& block) {
  return {block.size(), block};
}

}  // namespace

std::int64_t Flow::total() const { return size_product({calls, bytes}, kSent); }

std::vector<Flow> flows_of(const ProgramPlan& program) {
  std::map<Flow, std::int64_t> calls;
  each_transfer(program, [&](RegionKind region, const Call& call, std::int64_t runs) {
    const Collective& c = call.transfer->collective;
    const Flow flow{region,
                    std::string(block_of(call.block)),
                    c.kind,
                    join(call.transfer->axes, "."),
                    bytes_sent(c, call.transfer->group.size()),
                    0};
    calls[flow] += runs;
  });
  std::vector<Flow> out;
  for (const auto& [flow, n] : calls) {
    out.push_back(flow);
    out.back().calls = n;
  }
  return out;
}

std::vector<FlowClass> by_class(const std::vector<Flow>& flows) {
  std::map<std::string, std::vector<Flow>> by_block;
  for (Flow flow : flows) {
    std::vector<Flow>& mine = by_block[std::exchange(flow.block, "")];
    mine.push_back(std::move(flow));
  }
  std::vector<std::string> blocks;
  for (const auto& [block, mine] : by_block) blocks.push_back(block);
  std::sort(blocks.begin(), blocks.end(),
            [](const std::string& a, const std::string& b) { return order_of(a) < order_of(b); });
  std::vector<FlowClass> out;
  for (const std::string& block : blocks) {
    const std::vector<Flow>& mine = by_block.at(block);
    const auto alike = std::find_if(out.begin(), out.end(), [&](const FlowClass& c) {
      return !block.empty() && !c.blocks[0].empty() && c.flows == mine;
    });
    if (alike == out.end()) {
      out.push_back({{block}, mine});
    } else {
      alike->blocks.push_back(block);
    }
  }
  return out;
}

std::map<std::string, Counts> planned_counts(const ProgramPlan& program, std::int64_t runs) {
  std::map<std::string, Counts> out;
  each_transfer(program, [&](RegionKind, const Call& call, std::int64_t times) {
    const Transfer& transfer = *call.transfer;
    Counts& counts = out[join(transfer.axes, ".")];
    Count& count = counts[static_cast<std::size_t>(transfer.collective.kind)];
    const std::int64_t each = bytes_sent(transfer.collective, transfer.group.size());
    count.calls += times * runs;
    count.bytes = size_sum(count.bytes, size_product({times, runs, each}, kSent), kSent);
    if (transfer.from >= 0)  // a permute
      counts[static_cast<std::size_t>(CollectiveKind::Recv)].calls += times * runs;
  });
  return out;
}

std::int64_t bytes_of(const Counts& counts) {
  std::int64_t out = 0;
  for (const Count& count : counts) out = size_sum(out, count.bytes, kSent);
  return out;
}

}  // namespace tessera
