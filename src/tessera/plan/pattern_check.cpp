#include "tessera/plan/pattern_check.h"

#include <algorithm>
#include <set>
#include <string>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/op_paths.h"
#include "tessera/passes/place_chunks.h"

namespace tessera {

namespace {

void require_match(std::string_view what, const std::string& pattern, std::string_view kind,
                   const std::set<std::string>& paths) {
  const bool found =
      std::ranges::any_of(paths, [&](const std::string& path) { return matches(pattern, path); });
  if (found) return;
  fail(Fault::Usage, what, " '", pattern, "' matches no ", kind, "; ",
       near_paths(pattern, {paths.begin(), paths.end()}), "; '*' stands for any characters");
}

}  // namespace

void require_patterns_match(const std::vector<ProgramSource>& sources) {
  std::set<std::string> parameters, blocks, values;
  for (const ProgramSource& source : sources) {
    for (const State& state : source.graph.states()) {
      if (state.role == Role::Parameter) parameters.insert(state.path);
      values.emplace(parameter_path(state));
    }
    for (const Node& node : source.graph.nodes()) {
      if (!node.block.empty()) blocks.emplace(unit_of(node.block));
      if (node.op == &kBatch) values.insert(std::get<std::string>(node.attrs[0]));
      if (!node.name.empty()) values.insert(value_path(node));
    }
  }
  for (const ProgramSource& source : sources) {
    for (const Pin& pin : source.strategy.pins) {
      if (!pin.optional)
        require_match("pin", pin.values, "state, batch input or named value", values);
    }
    for (const std::string& pattern : source.strategy.unsharded)
      require_match("unsharded", pattern, "parameter", parameters);
    for (const RecomputePin& pin : source.strategy.recompute)
      require_match("recompute", pin.blocks, "block", blocks);
    for (const ChunkPin& pin : source.strategy.pipeline.pins)
      require_match("chunk", pin.blocks, "block", blocks);
    for (const BucketPin& pin : source.strategy.buckets.pins) {
      // A layer that has another one's parameters, as all but the first of ALBERT's.
      const std::string& all = pin.parameters;
      if (all.ends_with(".*") && blocks.contains(all.substr(0, all.size() - 2))) continue;
      require_match("group", all, "parameter", parameters);
    }
  }
}

}  // namespace tessera
