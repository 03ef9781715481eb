#include "tessera/apps/search_text.h"

#include <array>
#include <iomanip>
#include <map>
#include <sstream>

#include "tessera/ir/blocks.h"
#include "tessera/ir/op_paths.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/compute_in.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/search/mesh_to_search.h"
#include "tessera/train/programs.h"
#include "tessera/train/step.h"

namespace tessera {

namespace {

constexpr std::array<SearchMode, 3> kSearchModes = {SearchMode::DynamicProgramming,
                                                    SearchMode::RecursiveProgramming,
                                                    SearchMode::ShardingPropagation};

std::string placed_line(const OpPin& pin) {
  std::vector<std::string> ins, outs;
  for (const Sharding& in : pin.ins) ins.push_back(to_text(in));
  for (const Sharding& out : pin.outs) outs.push_back(to_text(out));
  return text(join(ins), ins.empty() ? "-> " : " -> ", join(outs));
}

/// Path and what is said of it, in order; blocks of which the same is said are written once.
std::string by_block(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::vector<std::pair<std::string, std::string>> blocks;  // neighbours of one block together
  for (const auto& [path, said] : lines) {
    const std::string block(block_of(path));
    if (blocks.empty() || blocks.back().first != block || block.empty())
      blocks.push_back({block, ""});
    const std::string name = block.empty() ? path : "  ." + path.substr(block.size() + 1);
    blocks.back().second += text(name, ": ", said, "\n");
  }
  std::map<std::string, std::string> known;  // what is said, of the first block
  std::string out;
  for (const auto& [block, said] : blocks) {
    const auto [first, is_new] = known.try_emplace(said, block);
    if (block.empty()) {
      out += said;
    } else {
      out += is_new ? text(block, "\n", said) : text(block, ": as ", first->second, "\n");
    }
  }
  return out;
}

/// What is said of ops and of parameters, by their paths.
struct Lines {
  std::vector<std::pair<std::string, std::string>> ops, states;
};

Lines lines_of(const Strategy& found) {
  Lines out;
  for (const OpPin& pin : found.ops) out.ops.emplace_back(pin.op, placed_line(pin));
  for (const Pin& pin : found.pins) out.states.emplace_back(pin.values, to_text(pin.sharding));
  return out;
}

/// What propagation decides: nothing is pinned, so the placed graph says it. An op whose statistics
/// are exchanged is there as the ops that it is written as.
Lines propagated_lines(const Graph& step, const Strategy& strategy, const Machine& machine) {
  const Graph placed = propagate(add_uses(step), strategy, machine);
  const std::vector<std::string> paths = op_paths(placed);
  Lines out;
  for (NodeId id = 0; id < placed.size(); ++id) {
    const Node& node = placed.node(id);
    const std::string& path = paths[static_cast<std::size_t>(id)];
    if (path.empty() || node.op->traits.leaf || node.op->traits.inserted) continue;
    OpPin pin{path, {}, {}};
    for (const ValueId input : node.inputs)
      pin.ins.push_back(placed.result(input).placement->sharding);
    for (const Result& result : node.results) pin.outs.push_back(result.placement->sharding);
    out.ops.emplace_back(path, placed_line(pin));
  }
  for (const State& state : placed.states()) {
    if (state.role == Role::Parameter)
      out.states.emplace_back(state.path, to_text(state.use->sharding));
  }
  return out;
}

std::string summary(const SearchReport& r, SearchMode mode, const Mesh& mesh) {
  std::ostringstream out;
  out << to_text(mode) << " on " << to_text(mesh) << ": " << std::setprecision(4) << r.step_seconds
      << " s a step";
  if (mode == SearchMode::DynamicProgramming)
    out << std::fixed << std::setprecision(2) << ", gap " << 100 * r.gap << " %";
  out << std::fixed << std::setprecision(2) << ", "
      << bytes_text(static_cast<std::int64_t>(r.bytes)) << " on a device\n"
      << r.ops << " ops in " << r.classes << " classes, " << r.options << " ways in all, width "
      << r.width << ", searched in " << r.seconds << " s\n";
  return out.str();
}

}  // namespace

SearchMode search_mode_of(std::string_view name) {
  std::vector<std::string> names;
  for (const SearchMode mode : kSearchModes) {
    if (to_text(mode) == name) return mode;
    names.emplace_back(to_text(mode));
  }
  fail(Fault::Usage, "unknown search mode '", name, "'; modes are ", join(names));
}

std::string search_text(const RunConfig& config, SearchMode mode, double memory_cap) {
  const RunSetup setup(config);
  Graph step = train_step(setup.task(), config.optimizer, config.global_batch_size);
  if (setup.precision) step = compute_in(step, *setup.precision, is_frozen(setup.config.optimizer));
  step = simplify(merge_pads(step));
  Strategy strategy{mesh_to_search(config.parallel.devices, config.parallel.machine)};
  if (mode == SearchMode::ShardingPropagation) {  // it needs something to go on from
    strategy.batch = {{}};
    for (const Axis& axis : strategy.mesh.axes()) strategy.batch[0].push_back(axis.name);
  }
  const Searched found =
      search_placements(step, strategy, mode, config.parallel.machine, {.bytes = memory_cap});
  const Lines lines = mode == SearchMode::ShardingPropagation
                          ? propagated_lines(step, strategy, config.parallel.machine)
                          : lines_of(found.strategy);
  return summary(found.report, mode, strategy.mesh) + "\n" + by_block(lines.ops) + "\n" +
         by_block(lines.states);
}

}  // namespace tessera
