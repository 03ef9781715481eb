#include "tessera/hlo/modules.h"

#include <map>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/hlo/module_text.h"
#include "tessera/ir/strategy.h"

namespace tessera::hlo {

namespace {

/// A program as one module.
class WholeModule {
 public:
  WholeModule(const std::string& name, const Program& program, const EmitOptions& options)
      : program_(program), text_(name, program.mesh(), options) {
    for (const Region& region : program.regions) {
      if (in_loop(region.kind)) loop_.push_back(&region.graph);
      add_arguments(region.graph);
    }
  }

  Module write() {
    Outs outs;
    run(program_.graph(RegionKind::Begin), outs);
    if (program_.mesh().size(kMicrobatchAxis) > 1) {
      write_loop(outs);
    } else {
      for (const Graph* graph : loop_) run(*graph, outs);
    }
    run(program_.graph(RegionKind::Update), outs);
    for (const Port::Kind kind : {Port::Kind::State, Port::Kind::Metric}) {
      for (const Region& region : program_.regions) {
        for (const Output& output : region.graph.outputs()) {
          const Port port = port_of_output(region.graph, output);
          if (port.kind == kind) text_.result(port, outs.at({kind, port.name}));
        }
      }
    }
    return text_.finish();
  }

 private:
  using Key = std::pair<Port::Kind, std::string>;
  using Outs = std::map<Key, Value>;  // what regions hand out so far

  void add_arguments(const Graph& graph) {
    const std::vector<bool> read = nodes_read(graph);
    for (std::size_t id = 0; id < read.size(); ++id) {
      const Node& node = graph.nodes()[id];
      if (!read[id] || (node.op != &kState && node.op != &kBatch)) continue;
      const Port port = port_of_leaf(node);
      if (!arguments_.contains({port.kind, port.name}))
        arguments_.emplace(Key{port.kind, port.name}, text_.argument(port));
    }
  }

  /// A slot is what an earlier region handed out, or a sum over all micro-batches.
  Value leaf(const Node& node, const Outs& outs) const {
    const Port port = port_of_leaf(node);
    check(port.kind != Port::Kind::Message, "message '", port.name,
          "' is received by a program without stages");
    if (port.kind != Port::Kind::Slot) return arguments_.at({port.kind, port.name});
    auto found = outs.find({Port::Kind::Slot, port.name});
    if (found == outs.end()) found = outs.find({Port::Kind::Sum, port.name});
    check(found != outs.end(), "slot '", port.name, "' is read before it is filled");
    return found->second;
  }

  void run(const Graph& graph, Outs& outs) {
    const auto leaves = [&](const Node& node) { return leaf(node, outs); };
    const Emitter::Known known = text_.emitter().graph(graph, leaves);
    for (const Output& output : graph.outputs()) {
      const Port port = port_of_output(graph, output);
      check(port.kind != Port::Kind::Message, "message '", port.name,
            "' is sent by a program without stages");
      outs[{port.kind, port.name}] = known.at(output.value);
    }
  }

  /// Sums begin with what changes nothing. Of metrics and states the last micro-batch's count.
  void write_loop(Outs& outs) {
    Code& code = text_.code();
    struct Carried {
      Port port;
      std::optional<Monoid> monoid;
    };
    std::vector<Carried> carried;
    Values start = {code.constant(0, Element::I64)};
    for (const Graph* graph : loop_) {
      for (const Output& output : graph->outputs()) {
        Carried each{port_of_output(*graph, output), {}};
        if (each.port.kind == Port::Kind::Slot) continue;
        if (output.kind == Output::Kind::Accumulate)
          each.monoid = reduction_over_time(each.port.result);
        const auto [element, shape] = type_of(each.port.result.type);
        start.push_back(code.identity(each.monoid.value_or(Monoid::Sum), element, shape));
        carried.push_back(std::move(each));
      }
    }
    const auto count = static_cast<double>(program_.mesh().size(kMicrobatchAxis));
    const auto body = [&](const Values& before) {
      text_.emitter().microbatch = before[0];
      Outs inner = outs;
      for (const Graph* graph : loop_) run(*graph, inner);
      Values after = {before[0] + 1.0};
      for (std::size_t i = 0; i < carried.size(); ++i) {
        const auto& [port, monoid] = carried[i];
        const Value& value = inner.at({port.kind, port.name});
        after.push_back(monoid
                            ? code.binary(combining(*monoid, value.element()), before[i + 1], value)
                            : value);
      }
      return after;
    };
    const Values ends = code.loop(
        start, [&](const Values& v) { return v[0] < count; }, body);
    text_.emitter().microbatch.reset();
    for (std::size_t i = 0; i < carried.size(); ++i)
      outs[{carried[i].port.kind, carried[i].port.name}] = ends[i + 1];
  }

  const Program& program_;
  ModuleText text_;
  std::vector<const Graph*> loop_;
  std::map<Key, Value> arguments_;
};

}  // namespace

Module whole_module(const std::string& name, const Program& program, const EmitOptions& options) {
  return WholeModule(name, program, options).write();
}

Module node_module(const Graph& graph, NodeId id, const EmitOptions& options,
                   std::int64_t microbatch) {
  const Node& node = graph.node(id);
  ModuleText out(std::string(node.op->name), graph.mesh(), options);
  Emitter::Known known;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Result& result = graph.result(node.inputs[i]);
    known[node.inputs[i]] = out.argument({Port::Kind::Operand, text("in", i), result});
  }
  if (graph.mesh().size(kMicrobatchAxis) > 1)
    out.emitter().microbatch = out.code().constant(static_cast<double>(microbatch), Element::I64);
  const auto no_leaf = [](const Node& leaf) -> Value {
    fail(Fault::Internal, leaf.op->name, " is no node to be written alone");
  };
  out.emitter().node(graph, id, no_leaf, known);
  for (std::size_t i = 0; i < node.results.size(); ++i)
    out.result({Port::Kind::Operand, text("out", i), node.results[i]},
               known.at({id, static_cast<std::int32_t>(i)}));
  return out.finish();
}

}  // namespace tessera::hlo
