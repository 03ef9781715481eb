#include "tessera/search/op_menus.h"

#include <algorithm>
#include <deque>
#include <map>

#include "tessera/base/index.h"
#include "tessera/ir/blocks.h"
#include "tessera/ir/builder.h"
#include "tessera/passes/op_decisions.h"

namespace tessera {

namespace {

struct OpClass {
  const Node* node;  // the first one
  OpUse use;
  const OpMenu* menu;
};

/// True where two nodes differ in nothing that a price depends on: paths of random numbers may.
bool alike_ops(const Node& a, const Node& b) {
  if (a.op != b.op || a.attrs.size() != b.attrs.size() || a.results.size() != b.results.size())
    return false;
  for (std::size_t r = 0; r < a.results.size(); ++r) {
    if (!(a.results[r].type == b.results[r].type)) return false;
  }
  for (std::size_t i = 0; i < a.attrs.size(); ++i) {
    if (same_attr(a.attrs[i], b.attrs[i])) continue;
    const auto *mine = std::get_if<std::string>(&a.attrs[i]),
               *other = std::get_if<std::string>(&b.attrs[i]);
    const bool path = mine != nullptr && other != nullptr && !a.block.empty() &&
                      replace_path(*mine, a.block, "@") == replace_path(*other, b.block, "@");
    if (!path) return false;
  }
  return true;
}

class Classifier {
 public:
  Classifier(const Graph& graph, const Strategy& strategy, const StatePlaces& places,
             const GradientFlow& flow, Prices& prices)
      : graph_(graph),
        places_(places),
        flow_(flow),
        prices_(prices),
        decisions_(graph, strategy, prices.axes()) {}

  OpMenus run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      const bool is_op = node.phase == Phase::Forward && !node.op->traits.leaf;
      out_.of.push_back(is_op ? menu_of(id) : nullptr);
    }
    return std::move(out_);
  }

 private:
  const OpMenu* menu_of(NodeId id) {
    const Node& node = graph_.node(id);
    const OpUse use = use_of(id);
    std::vector<OpClass>& known = known_[node.op];
    const auto found = std::ranges::find_if(known, [&](const OpClass& c) {
      return same_use(c.use, use) && same_operands(*c.node, node) && alike_ops(*c.node, node);
    });
    if (found != known.end()) return found->menu;
    auto made = std::make_unique<const OpMenu>(make_menu(graph_.call(id), use, prices_));
    require(!made->options.empty(), "no way to shard this op over the mesh\n    ",
            describing(graph_, id));
    known.push_back({&node, use, made.get()});
    out_.classes.push_back(std::move(made));
    return known.back().menu;
  }

  OpUse use_of(NodeId id) {
    OpUse out{flow_.wants(id), flow_.flows(id), flow_.read_back(id)};
    if (const OpDecision* decision = decisions_.of(id)) {
      out.pinned = &decision->choices;
      out.kept = &decision->outs;
    } else if (const Sharding* pin = places_.pinned(graph_.node(id))) {
      pinned_values_.push_back({prices_.axes().read(*pin)});
      out.kept = &pinned_values_.back();
    }
    return out;
  }

  static bool same_use(const OpUse& a, const OpUse& b) {
    const auto same = [](const auto* x, const auto* y) {
      return (x == nullptr) == (y == nullptr) && (x == nullptr || *x == *y);
    };
    return a.wants == b.wants && a.flows == b.flows && a.read_back == b.read_back &&
           same(a.pinned, b.pinned) && same(a.kept, b.kept);
  }
  bool same_operands(const Node& a, const Node& b) const {
    if (a.inputs.size() != b.inputs.size()) return false;
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      if (!(graph_.type(a.inputs[i]) == graph_.type(b.inputs[i]))) return false;
    }
    return true;
  }

  const Graph& graph_;
  const StatePlaces& places_;
  const GradientFlow& flow_;
  Prices& prices_;
  OpDecisions decisions_;
  std::map<const OpDef*, std::vector<OpClass>> known_;
  std::deque<std::vector<AxisPlacements>> pinned_values_;
  OpMenus out_;
};

}  // namespace

OpMenus op_menus(const Graph& graph, const Strategy& strategy, const StatePlaces& places,
                 const GradientFlow& flow, Prices& prices) {
  return Classifier(graph, strategy, places, flow, prices).run();
}

}  // namespace tessera
