#include "tessera/passes/preview.h"

#include <algorithm>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ir/strategy.h"
#include "tessera/ir/value_table.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

bool begins_whole(const Node& node) {
  return node.op == &kWholeBatch && node.phase == Phase::Forward;
}

class Previewer {
 public:
  explicit Previewer(const Graph& graph)
      : rewrite_(graph), early_(graph.nodes().size()), late_(early_), copies_(graph) {
    for (const Output& output : graph.outputs()) late_[at(output.value.node)] = true;
    for (NodeId id = graph.size(); id-- > 0;) {
      const bool begins = begins_whole(graph.node(id));
      for (const ValueId input : graph.node(id).inputs) {
        if (graph.node(input.node).op->traits.leaf) continue;
        if (begins || early_[at(id)]) early_[at(input.node)] = true;
        if (late_[at(id)] && !begins) late_[at(input.node)] = true;
      }
    }
  }

  Graph run() {
    const Graph& from = rewrite_.from();
    for (NodeId id = 0; id < from.size(); ++id) {
      if (begins_whole(from.node(id))) {
        rewrite_.copy_on(id, previewed(id));
        continue;
      }
      if (early_[at(id)]) copy_early(id);
      if (!early_[at(id)] || late_[at(id)]) rewrite_.copy(id);
    }
    return rewrite_.finish();
  }

 private:
  /// The operands of a node, of copies.
  ValueIds previewed(NodeId id) {
    ValueIds out;
    for (const ValueId input : rewrite_.from().node(id).inputs)
      out.push_back(copies_[input].valid() ? copies_[input] : rewrite_(input).id());
    return out;
  }

  void copy_early(NodeId id) {
    const std::vector<Value> values = rewrite_.copy_apart(id, previewed(id));
    for (std::size_t i = 0; i < values.size(); ++i)
      copies_[{id, static_cast<std::int32_t>(i)}] = values[i].id();
    if (!values.empty()) rewrite_.to().set_recompute(values[0], Recompute::None);
  }

  Rewrite rewrite_;
  std::vector<bool> early_, late_;  // by node: whole_batch reads it; so does another
  ValueTable<ValueId> copies_;
};

}  // namespace

bool has_preview(const Graph& graph, const Mesh& mesh) {
  return mesh.has(kMicrobatchAxis) && std::ranges::any_of(graph.nodes(), begins_whole);
}

Graph preview(const Graph& graph, const Mesh& mesh) {
  return has_preview(graph, mesh) ? Previewer(graph).run() : graph;
}

}  // namespace tessera
