#include "tessera/passes/program.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"

namespace tessera {

int Program::index_of(RegionKind kind, int chunk) const {
  return region_index(regions, kind, chunk);
}

const Graph& Program::graph(RegionKind kind, int chunk) const {
  return regions[at(index_of(kind, chunk))].graph;
}

const Program::Message& Program::message(std::string_view name) const {
  const auto found = std::ranges::find(messages, name, &Message::name);
  check(found != messages.end(), "no message '", name, "'");
  return *found;
}

std::string Program::name_of(const Region& region) const {
  const auto kinds = std::count_if(regions.begin(), regions.end(),
                                   [&](const Region& other) { return other.kind == region.kind; });
  return text(to_text(region.kind), kinds == 1 ? "" : text(region.chunk));
}

bool accumulates(const Result& result) {
  return result.placement->sharding.is_partial(kMicrobatchAxis);
}

Monoid reduction_over_time(const Result& result) {
  for (const Partial& p : result.placement->sharding.partial) {
    if (p.axis == kMicrobatchAxis) return p.monoid;
  }
  check(false, "micro-batches leave nothing unfinished in a value at ", result.placement->sharding);
  return Monoid::Sum;
}

ActionOrder::ActionOrder(const Program& program) : runs_(program.regions.size()) {
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    region_.push_back(program.index_of(program.actions[i].region, program.actions[i].chunk));
    runs_[at(region_.back())].push_back(i);
  }
}

std::size_t ActionOrder::last_run(const std::set<int>& readers, std::size_t microbatch) const {
  std::size_t out = 0;
  for (const int r : readers) out = std::max(out, runs_[at(r)][microbatch]);
  return out;
}

std::int64_t ActionOrder::depth(int fill, const std::set<int>& readers, std::int64_t ahead) const {
  const std::vector<std::size_t>& fills = runs_[at(fill)];
  const std::size_t before = std::min(at(ahead), fills.size());
  std::size_t depth = std::max<std::size_t>(before, 1);
  for (std::size_t k = 0; k < fills.size(); ++k) {
    const std::size_t end = std::max(fills[k], last_run(readers, k));
    const auto taken = [&](std::size_t next) {
      return next <= k + static_cast<std::size_t>(ahead) ||
             fills[next - static_cast<std::size_t>(ahead)] <= end;
    };
    while (k + depth < fills.size() && taken(k + depth)) ++depth;
  }
  return static_cast<std::int64_t>(depth);
}

bool ActionOrder::in_turn(int fill, const std::set<int>& readers) const {
  const std::vector<std::size_t>& fills = runs_[at(fill)];
  for (std::size_t k = 0; k < fills.size(); ++k) {
    const std::size_t end = last_run(readers, k);
    for (std::size_t i = fills[k] + 1; i < end; ++i) {
      if (region_[i] <= fill || region_[i] > region_[end]) return false;
    }
  }
  return true;
}

bool ActionOrder::ends_in_order() const {
  return std::ranges::is_sorted(runs_, {},
                                [](const auto& runs) { return runs.empty() ? 0 : runs.back(); });
}

std::map<std::string, std::int64_t> find_rings(const Program& program) {
  const auto& regions = program.regions;
  const ActionOrder order(program);
  std::map<std::string, std::set<int>> readers;  // by slot
  std::map<std::string, int> fills;
  for (int r = 0; r < static_cast<int>(regions.size()); ++r) {
    if (!in_loop(regions[at(r)].kind)) continue;
    for (const Output& output : regions[at(r)].graph.outputs()) {
      if (output.kind == Output::Kind::Slot) fills[output.name] = r;
    }
    for (const Node& node : regions[at(r)].graph.nodes()) {
      if (node.op != &kSlot) continue;
      readers[std::get<std::string>(node.attrs[0])].insert(r);
    }
  }
  std::map<std::pair<int, std::set<int>>, std::int64_t> known;  // few: by regions
  std::map<std::string, std::int64_t> out;
  for (const auto& [slot, fill] : fills) {
    const auto [found, fresh] = known.try_emplace({fill, readers[slot]}, 0);
    if (fresh) found->second = order.depth(fill, readers[slot]);
    out[slot] = found->second;
  }
  return out;
}

Actions whole_step(const Actions& stage) {
  Actions out = {{RegionKind::Begin, 0, 0}};
  out.insert(out.end(), stage.begin(), stage.end());
  out.push_back({RegionKind::Update, 0, 0});
  return out;
}

}  // namespace tessera
