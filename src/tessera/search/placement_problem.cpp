#include "tessera/search/placement_problem.h"

#include <algorithm>
#include <map>

#include "tessera/base/index.h"
#include "tessera/ir/blocks.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/op_paths.h"
#include "tessera/passes/state_places.h"
#include "tessera/search/gradient_flow.h"
#include "tessera/search/sources.h"

namespace tessera {

class PlacementProblem::Maker {
 public:
  Maker(PlacementProblem& problem)
      : p_(problem),
        graph_(problem.graph_),
        prices_(problem.prices_),
        axes_(prices_.axes()),
        places_(graph_, problem.strategy_, axes_),
        flow_(gradient_flow(graph_)),
        readers_(graph_),
        sources_(graph_),
        tables_(graph_, prices_) {
    p_.op_decisions_.assign(at(graph_.size()), -1);
    p_.menus_ = op_menus(graph_, problem.strategy_, places_, flow_, prices_);
  }

  void run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (menu(id) == nullptr) continue;
      const auto& inputs = graph_.node(id).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        readers_[inputs[i]].push_back({id, static_cast<int>(i)});
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (menu(id) != nullptr) {
        decide_op(id);
      } else if (node.op->traits.leaf && !readers_[{id, 0}].empty()) {
        decide_leaf(id);
      }
    }
  }

 private:
  struct Reader {
    NodeId node;
    int operand;
  };

  const OpMenu* menu(NodeId id) const { return p_.menus_.of[at(id)]; }

  // ---- decisions

  int decide(std::string name, Name block, std::shared_ptr<const Options> options) {
    p_.decisions_.decisions.push_back(
        {std::move(name), std::string(block_of(block)), std::move(options)});
    return p_.decisions_.size() - 1;
  }
  void link(int from, int to, std::shared_ptr<const CostTable> table) {
    p_.decisions_.links.push_back({from, to, std::move(table)});
  }

  void decide_op(NodeId id) {
    const Node& node = graph_.node(id);
    const OpMenu& ways = *menu(id);
    const int decision = decide(text(node.op->name, " %", id), node.block, ways.costs);
    p_.op_decisions_[at(id)] = decision;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueSource& source = sources_[node.inputs[i]];
      check(source.decision >= 0, "nothing decides operand ", i, " of ", describing(graph_, id));
      link(source.decision, decision,
           tables_.between(source, node.inputs[i], tables_.read_by(ways, static_cast<int>(i))));
    }
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) {
      if (readers_[{id, r}].empty()) continue;
      ValueSource source = tables_.kept_by(ways, r);
      source.decision = decision;
      const bool many = source.port_of->size() >= 2 * source.ports->size();
      if (many && node.results.size() == 1) source = decide_kept(source, id);
      offer(ValueId{id, r}, std::move(source));
    }
  }

  /// The same place as a decision of its own.
  ValueSource decide_kept(const ValueSource& of, NodeId id) {
    const Node& node = graph_.node(id);
    const std::size_t n = of.ports->size();
    auto& [channel, options, same] = kept_[of.port_of.get()];
    if (!channel) {
      CostTable made{static_cast<int>(of.port_of->size()), static_cast<int>(n), {}};
      made.costs.assign(of.port_of->size() * n, kNever);
      for (std::size_t o = 0; o < of.port_of->size(); ++o)
        made.costs[o * n + at((*of.port_of)[o])] = 0;
      channel = std::make_shared<const CostTable>(std::move(made));
      options = std::make_shared<const Options>(Options{std::vector<Cost>(n, 0), {}});
      std::vector<int> each;
      for (std::size_t i = 0; i < n; ++i) each.push_back(static_cast<int>(i));
      same = std::make_shared<const std::vector<int>>(std::move(each));
    }
    const ValueSource out{decide(text("kept %", id), node.block, options), of.ports, same};
    link(of.decision, out.decision, channel);
    return out;
  }

  void decide_leaf(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == &kState) return decide_state(id);
    AxisPlacements on_axes = axes_.whole();
    if (node.op == &kBatch) on_axes = without_time(places_.batch(node));
    p_.leaves_.emplace(id, on_axes);
    auto& [ports, port_of, options] = fixed_[to_text(*axes_.write(on_axes, node.type().ndim()))];
    if (!ports) {
      ports = std::make_shared<const Ports>(Ports{{on_axes, on_axes}});
      port_of = std::make_shared<const std::vector<int>>(std::vector<int>{0});
      options = std::make_shared<const Options>(Options{{0}, {}});
    }
    offer({id, 0}, {decide(text(node.op->name, " %", id), node.block, options), ports, port_of});
  }

  AxisPlacements without_time(AxisPlacements on_axes) const {
    for (int a = 0; a < axes_.count(); ++a) {
      if (axes_.is_time(a)) on_axes[at(a)] = kWhole;
    }
    return on_axes;
  }

  /// Where some reader wants it; the update works there, and its sums end there.
  void decide_state(NodeId id) {
    const Node& node = graph_.node(id);
    const State* state = nullptr;
    for (const State& s : graph_.states()) {
      if (s.value.node == id) state = &s;
    }
    check(state != nullptr, "a state that is not listed: ", describing(graph_, id));
    Ports ports;
    if (is_pinned(*state)) {
      const AxisPlacements use = places_.of(state->path).use;
      ports.push_back({use, use});
    } else {
      for (const Reader& reader : readers_[{id, 0}]) {
        for (const Port& port : *tables_.read_by(*menu(reader.node), reader.operand).ports)
          add_once(ports, Port{port.on_axes, port.on_axes});
      }
    }
    StateKey key{node.type(), ports_text(ports), bytes_beside(*state)};
    auto found =
        std::ranges::find_if(state_classes_, [&](const auto& c) { return c.first == key; });
    if (found == state_classes_.end()) {
      ValueSource made = make_state(node, key.beside, std::move(ports));
      found = state_classes_.insert(found, {std::move(key), std::move(made)});
    }
    ValueSource source = found->second;
    source.decision = decide(state->path, Name(state->path), state_options_.at(source.ports.get()));
    auto forms = std::make_shared<std::vector<AxisPlacements>>();
    for (const Port& port : *source.ports) forms->push_back(port.on_axes);
    p_.states_.push_back({std::string(parameter_path(*state)), source.decision, node.type().ndim(),
                          std::move(forms)});
    offer({id, 0}, std::move(source));
  }

  bool is_pinned(const State& state) const {
    return std::ranges::any_of(p_.strategy_.pins, [&](const Pin& pin) {
      return matches(pin.values, parameter_path(state));
    });
  }

  /// Bytes per byte of the state that the step keeps with it: moments, and a gradient.
  double bytes_beside(const State& state) const {
    double out = 0;
    for (const State& other : graph_.states()) {
      if (other.path != state.path && parameter_path(other) == parameter_path(state))
        out += static_cast<double>(graph_.type(other.value).bytes());
    }
    return out / std::max(1.0, static_cast<double>(graph_.type(state.value).bytes()));
  }

  ValueSource make_state(const Node& node, double beside, Ports ports) {
    Options options;
    const auto whole = static_cast<double>(node.type().bytes());
    std::vector<int> each;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const double local = whole / static_cast<double>(prices_.parts(ports[i].on_axes));
      // The update reads the gradient, and reads and writes the state and what goes with it.
      const double kept = local * (2 + beside);
      options.costs.push_back(flow_.any() ? prices_.streamed(2 * kept - local) : 0);
      options.bytes.push_back(kept);
      each.push_back(static_cast<int>(i));
    }
    ValueSource out{-1, std::make_shared<const Ports>(std::move(ports)),
                    std::make_shared<const std::vector<int>>(std::move(each))};
    state_options_[out.ports.get()] = std::make_shared<const Options>(std::move(options));
    return out;
  }

  std::string ports_text(const Ports& ports) const {
    std::string out;
    for (const Port& port : ports) {
      for (const AxisPlacement on_axis : port.on_axes) out += static_cast<char>('a' + on_axis);
      out += '|';
      for (const AxisPlacement on_axis : port.gradient) out += static_cast<char>('m' + on_axis);
      out += ' ';
    }
    return out;
  }

  /// The value is read from this source: directly by one reader, by several through one place to
  /// which it is brought for all.
  void offer(ValueId v, ValueSource source) {
    const std::vector<Reader>& readers = readers_[v];
    if (readers.size() < 2) {
      sources_[v] = std::move(source);
      return;
    }
    Ports ports = *source.ports;
    for (const Reader& reader : readers) {
      for (const Port& port : *tables_.read_by(*menu(reader.node), reader.operand).ports)
        add_once(ports, port);
    }
    const std::string key = ports_text(ports);
    auto& [shared, each, options] = common_[key];
    if (!shared) {
      std::vector<int> same;
      for (std::size_t i = 0; i < ports.size(); ++i) same.push_back(static_cast<int>(i));
      options = std::make_shared<const Options>(Options{std::vector<Cost>(ports.size(), 0), {}});
      shared = std::make_shared<const Ports>(std::move(ports));
      each = std::make_shared<const std::vector<int>>(std::move(same));
    }
    const Name block = p_.decisions_.decisions[at(source.decision)].block;
    const ValueSource read{decide(text("read ", v), block, options), shared, each};
    link(source.decision, read.decision, tables_.between(source, v, read));
    sources_[v] = read;
  }

  PlacementProblem& p_;
  const Graph& graph_;
  Prices& prices_;
  const Axes& axes_;
  StatePlaces places_;
  GradientFlow flow_;
  ValueTable<std::vector<Reader>> readers_;
  ValueTable<ValueSource> sources_;
  SourceTables tables_;
  struct SharedTables {
    std::shared_ptr<const CostTable> channel;
    std::shared_ptr<const Options> options;
    std::shared_ptr<const std::vector<int>> same;
  };
  std::map<const void*, SharedTables> kept_;
  struct Fixed {
    std::shared_ptr<const Ports> ports;
    std::shared_ptr<const std::vector<int>> port_of;
    std::shared_ptr<const Options> options;
  };
  std::map<std::string, Fixed> fixed_, common_;
  struct StateKey {
    TensorType type;
    std::string ports;
    double beside;
    friend bool operator==(const StateKey&, const StateKey&) = default;
  };
  std::vector<std::pair<StateKey, ValueSource>> state_classes_;
  std::map<const void*, std::shared_ptr<const Options>> state_options_;
};

PlacementProblem::PlacementProblem(const Graph& graph, const Strategy& strategy,
                                   const Machine& machine)
    : graph_(graph), strategy_(strategy), prices_(strategy, machine) {
  Maker(*this).run();
}

std::int64_t PlacementProblem::options() const {
  std::int64_t out = 0;
  for (const OpMenu* menu : menus_.of)
    out += menu == nullptr ? 0 : static_cast<std::int64_t>(menu->options.size());
  return out;
}

Strategy PlacementProblem::pinned(const Picks& picks) const {
  Strategy out = strategy_;
  out.ops.clear();
  const Axes& axes = prices_.axes();
  const std::vector<std::string> paths = op_paths(graph_);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (op_decisions_[at(id)] < 0) continue;
    const OpOption& option = menus_.of[at(id)]->options[at(picks[at(op_decisions_[at(id)])])];
    const Node& node = graph_.node(id);
    OpPin pin{paths[at(id)], {}, {}};
    for (std::size_t i = 0; i < option.ins.size(); ++i)
      pin.ins.push_back(axes.write(option.ins[i], graph_.type(node.inputs[i]).ndim())->sharding);
    for (std::size_t r = 0; r < option.kept.size(); ++r)
      pin.outs.push_back(axes.write(option.kept[r], node.results[r].type.ndim())->sharding);
    out.ops.push_back(std::move(pin));
  }
  for (const StateDecision& state : states_) {
    const AxisPlacements& on_axes = (*state.forms)[at(picks[at(state.decision)])];
    out.pins.push_back({state.path, axes.write(on_axes, state.ndim)->sharding});
  }
  return out;
}

}  // namespace tessera
