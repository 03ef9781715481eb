#include "tessera/ir/print.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/ir/blocks.h"
#include "tessera/ir/graph_words.h"

namespace tessera {

namespace {

using namespace graph_words;

/// Items begin..end of a list.
struct Span {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// States and outputs: some of each.
struct Lines {
  Span states, outputs;
};

/// Where states and outputs stand among the nodes: in their own order, each as early as its value
/// is defined.
class LineOrder {
 public:
  explicit LineOrder(const Graph& graph);
  /// What stands behind nodes first..last.
  Lines behind(NodeId first, NodeId last) const {
    const auto begin = static_cast<std::size_t>(first + 1),
               end = static_cast<std::size_t>(last + 2);
    return {{states_[begin], states_[end]}, {outputs_[begin], outputs_[end]}};
  }

 private:
  std::vector<std::size_t> states_, outputs_;  // [i + 1]: how many stand before node i
};

/// Consecutive nodes of one block, phase and stage; inputs of earlier phases may be among them.
struct Run {
  Block block;
  std::int32_t stage = -1;
  ValueIds reads = {};
  Lines lines = {};        // that stand behind its nodes
  Run* same_as = nullptr;  // the first run of its class, carried over, is this one
  bool repeats = false;    // it is the first of a class of several
  /// Of the first: how many of its states and outputs, carried over, are those of all the class.
  std::size_t common_states = 0, common_outputs = 0;
  const Run& model() const { return same_as != nullptr ? *same_as : *this; }
  NodeId first() const { return block.nodes.front(); }
  NodeId last() const { return block.nodes.back(); }
};

std::vector<Run> find_runs(const Graph& graph, const LineOrder& order);

class GraphPrinter {
 public:
  GraphPrinter(const Graph& graph, std::string indent)
      : graph_(graph), indent_(std::move(indent)), order_(graph) {}
  std::string print();

 private:
  void nodes(NodeId first, NodeId last);
  void body(const Run& run);
  void block(const Run& run);
  void node(NodeId id);
  void attr(const AttrValue& value);
  void result(const Result& result);
  void marks(const Node& node);
  void declarations(const Lines& lines);
  void state(const State& state);
  template <typename... Parts>
  void put(const Parts&... parts) {
    (append_text(out_, parts), ...);
  }

  const Graph& graph_;
  std::string indent_, out_;
  LineOrder order_;
};

/// A path as it is, or in quotes where it would not read back.
std::string path_text(std::string_view path) {
  const bool bare = !path.empty() && std::all_of(path.begin(), path.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '/';
  });
  return bare ? std::string(path) : quoted(path);
}

}  // namespace

std::string to_text(const Graph& graph) { return GraphPrinter(graph, "").print(); }

namespace {

std::string GraphPrinter::print() {
  put(indent_, "graph ", kForms[static_cast<std::size_t>(graph_.form())]);
  if (!graph_.mesh().axes().empty()) put(" mesh ", graph_.mesh());
  put("\n");
  declarations(order_.behind(-1, -1));
  NodeId next = 0;
  for (const Run& run : find_runs(graph_, order_)) {
    if (run.same_as == nullptr && !run.repeats) continue;
    nodes(next, run.first() - 1);
    block(run);
    next = run.last() + 1;
  }
  nodes(next, graph_.size() - 1);
  return std::move(out_);
}

void GraphPrinter::nodes(NodeId first, NodeId last) {
  for (NodeId id = first; id <= last; ++id) {
    node(id);
    declarations(order_.behind(id, id));
  }
}

void GraphPrinter::block(const Run& run) {
  put(indent_, "block %", run.first(), " in ", path_text(run.block.path), " (", join(run.reads),
      ")");
  if (run.same_as != nullptr) {
    put(" as %", run.same_as->first());
    if (run.stage != -1) put(" stage=", run.stage);
    put("\n");
  } else {
    put(" {\n");
    indent_ += "  ";
    body(run);
    indent_.resize(indent_.size() - 2);
    put(indent_, "}\n");
  }
  Lines own = run.lines;  // those that not all of the class have stand behind the block
  own.states.begin += run.model().common_states;
  own.outputs.begin += run.model().common_outputs;
  declarations(own);
}

void GraphPrinter::body(const Run& run) {
  const std::size_t end_states = run.lines.states.begin + run.common_states;
  const std::size_t end_outputs = run.lines.outputs.begin + run.common_outputs;
  for (const NodeId id : run.block.nodes) {
    node(id);
    Lines lines = order_.behind(id, id);
    lines.states.end = std::min(lines.states.end, end_states);
    lines.outputs.end = std::min(lines.outputs.end, end_outputs);
    declarations(lines);
  }
}

void GraphPrinter::node(NodeId id) {
  const Node& n = graph_.node(id);
  put(indent_, "%", id, " = ", n.op->name, "(", join(n.inputs), ")");
  for (std::size_t i = 0; i < n.attrs.size(); ++i) {
    put(" ", n.op->attrs[i].name, "=");
    attr(n.attrs[i]);
  }
  put(" : ");
  if (n.results.empty()) put("()");
  for (std::size_t i = 0; i < n.results.size(); ++i) {
    if (i > 0) put(", ");
    result(n.results[i]);
  }
  marks(n);
  put("\n");
}

void GraphPrinter::attr(const AttrValue& value) {
  if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&value)) {
    put("{\n", GraphPrinter(**graph, indent_ + "    ").print(), indent_, "}");
  } else {
    put(value);
  }
}

void GraphPrinter::result(const Result& result) {
  put(result.type);
  if (result.placement) put(" at ", *result.placement);
  if (!result.logical.empty()) put(" of ", result.logical);
}

void GraphPrinter::marks(const Node& n) {
  if (!n.block.empty()) put(" @", path_text(n.block));
  if (n.phase != Phase::Forward) put(" ", kPhases[static_cast<std::size_t>(n.phase)]);
  if (n.stage != -1) put(" stage=", n.stage);
  if (n.recompute != Recompute::None) put(" recompute=", to_text(n.recompute));
  if (!n.name.empty()) put(" name=", quoted(n.name));
  if (n.cotangent) put(n.cotangent->final ? " cotangent=" : " contribution=", n.cotangent->of);
  if (n.like != -1) put(" like=%", n.like);
  if (n.remat_of != -1) put(" remat_of=%", n.remat_of);
  if (n.where.line != 0 || *n.where.file != '\0')
    put(" ", path_text(n.where.file), ":", n.where.line);
}

void GraphPrinter::declarations(const Lines& lines) {
  for (std::size_t i = lines.states.begin; i < lines.states.end; ++i) state(graph_.states()[i]);
  for (std::size_t i = lines.outputs.begin; i < lines.outputs.end; ++i) {
    const Output& output = graph_.outputs()[i];
    put(indent_, kOutputs[static_cast<std::size_t>(output.kind)], " ", quoted(output.name), " = ",
        output.value, "\n");
  }
}

void GraphPrinter::state(const State& state) {
  put(indent_, "state ", quoted(state.path), " = ", state.value, " ",
      kRoles[static_cast<std::size_t>(state.role)]);
  put(" ", kInits[static_cast<std::size_t>(state.init.kind)], "=", state.init.value);
  if (state.home) put(" home=", *state.home);
  if (state.use) put(" use=", *state.use);
  put("\n");
}

LineOrder::LineOrder(const Graph& graph) {
  const auto place = [&](const auto& items, std::vector<std::size_t>& before) {
    std::size_t done = 0;
    NodeId reached = -1;  // the latest node of items[..done]
    for (NodeId id = -1; id <= graph.size(); ++id) {
      before.push_back(done);
      for (; done < items.size(); ++done) {
        reached = std::max(reached, items[done].value.node);
        if (reached > id && id + 1 < graph.size()) break;
      }
    }
  };
  place(graph.states(), states_);
  place(graph.outputs(), outputs_);
}

/// True where the nodes of `a`, carried over, are those of `b` to the letter.
bool same_nodes(const Graph& graph, const Run& a, const Run& b) {
  if (a.block.nodes.size() != b.block.nodes.size() || a.reads.size() != b.reads.size())
    return false;
  const Carry carry(a.block, b.block, a.reads, b.reads);
  for (std::size_t i = 0; i < a.block.nodes.size(); ++i) {
    Node node = carry(graph.node(a.block.nodes[i]));
    node.stage = b.stage;
    if (!(node == graph.node(b.block.nodes[i]))) return false;
  }
  return true;
}

/// How many of the first `limit` items of run `a`, carried over, are those of run `b`. What stands
/// for a value of another run is not carried.
template <typename Item>
std::size_t common(const std::vector<Item>& items, const Run& a, Span of_a, Span of_b,
                   std::size_t limit, const Carry& carry) {
  std::size_t n = 0;
  for (; n < std::min(limit, of_b.size()); ++n) {
    const Item& item = items[of_a.begin + n];
    const bool inside = item.value.node >= a.first() && item.value.node <= a.last();
    if (!inside || !(carry(item) == items[of_b.begin + n])) break;
  }
  return n;
}

/// The node behind the run that begins at `first`. Inputs may be of an earlier phase than what
/// reads them.
NodeId end_of_run(const Graph& graph, NodeId first) {
  const Node& front = graph.node(first);
  const std::string_view path = block_of(front.block);
  std::optional<Phase> phase;
  for (NodeId end = first; end < graph.size(); ++end) {
    const Node& node = graph.node(end);
    if (node.stage != front.stage || block_of(node.block) != path) return end;
    const bool same =
        !phase || node.phase == *phase || (node.op->traits.leaf && node.phase < *phase);
    if (!same) return end;
    if (!node.op->traits.leaf) phase = node.phase;
  }
  return graph.size();
}

/// Runs of two nodes or more that lie in a block; a line that stands for one node would save
/// nothing.
std::vector<Run> split_runs(const Graph& graph) {
  std::vector<Run> runs;
  for (NodeId first = 0, end = 0; first < graph.size(); first = end) {
    end = end_of_run(graph, first);
    const std::string_view path = block_of(graph.node(first).block);
    if (path.empty() || end - first < 2) continue;
    Run& run = runs.emplace_back(Run{{std::string(path), {}}, graph.node(first).stage});
    for (NodeId id = first; id < end; ++id) run.block.nodes.push_back(id);
  }
  return runs;
}

std::vector<Run> find_runs(const Graph& graph, const LineOrder& order) {
  std::vector<Run> runs = split_runs(graph);
  std::unordered_map<std::uint64_t, std::vector<Run*>> by_hash;
  for (Run& run : runs) {
    run.reads = outside_values(graph, run.block);
    run.lines = order.behind(run.first(), run.last());
    run.common_states = run.lines.states.size();
    run.common_outputs = run.lines.outputs.size();
    std::vector<Run*>& candidates = by_hash[structural_hash(graph, run.block)];
    const auto same = std::find_if(candidates.begin(), candidates.end(), [&](const Run* other) {
      return same_nodes(graph, *other, run);
    });
    if (same == candidates.end()) {
      candidates.push_back(&run);
      continue;
    }
    Run& model = **same;
    run.same_as = &model;
    model.repeats = true;
    const Carry carry(model.block, run.block, model.reads, run.reads);
    model.common_states = common(graph.states(), model, model.lines.states, run.lines.states,
                                 model.common_states, carry);
    model.common_outputs = common(graph.outputs(), model, model.lines.outputs, run.lines.outputs,
                                  model.common_outputs, carry);
  }
  return runs;
}

}  // namespace

}  // namespace tessera
