#include "tessera/ir/print.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/ir/blocks.h"
#include "tessera/ir/graph_words.h"

namespace tessera {

namespace {

using namespace graph_words;

/// Where states and outputs stand among the nodes: in their own order, each as early as its value
/// is defined.
struct Lines {
  explicit Lines(const Graph& graph);
  /// Indices of the states, and of the outputs, that stand behind nodes first..last.
  std::pair<std::size_t, std::size_t> states_behind(NodeId first, NodeId last) const {
    return range(states, first, last);
  }
  std::pair<std::size_t, std::size_t> outputs_behind(NodeId first, NodeId last) const {
    return range(outputs, first, last);
  }

  std::vector<std::size_t> states,
      outputs;  // [i]: how many stand before node i, and at the end all

 private:
  static std::pair<std::size_t, std::size_t> range(const std::vector<std::size_t>& before,
                                                   NodeId first, NodeId last) {
    return {before[static_cast<std::size_t>(first) + 1],
            before[static_cast<std::size_t>(last) + 2]};
  }
};

/// Consecutive nodes of one block, phase and stage.
struct Run {
  Block block;
  std::int32_t stage = -1;
  std::vector<ValueId> reads = {};
  Run* same_as = nullptr;     // the first run of its class, carried over, is this one
  bool repeats = false;       // it is the first of a class of several
  bool carries_lines = true;  // of the first: the states and outputs of all runs of the class are
                              // its own, carried over
  const Run& body() const { return same_as != nullptr ? *same_as : *this; }
  NodeId first() const { return block.nodes.front(); }
  NodeId last() const { return block.nodes.back(); }
};

std::vector<Run> find_runs(const Graph& graph, const Lines& lines);

class Printer {
 public:
  Printer(const Graph& graph, std::string indent)
      : graph_(graph), indent_(std::move(indent)), lines_(graph) {}
  std::string print();

 private:
  void range(NodeId first, NodeId last, bool with_lines = true);
  void block(const Run& run);
  void node(NodeId id);
  void attr(const AttrValue& value);
  void result(const Result& result);
  void marks(const Node& node);
  void declarations(NodeId first, NodeId last);
  void state(const State& state);
  template <typename... Parts>
  void put(const Parts&... parts) {
    (append_text(out_, parts), ...);
  }

  const Graph& graph_;
  std::string indent_, out_;
  Lines lines_;
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

std::string to_text(const Graph& graph) { return Printer(graph, "").print(); }

namespace {

std::string Printer::print() {
  put(indent_, "graph ", kForms[static_cast<std::size_t>(graph_.form())]);
  if (!graph_.mesh().axes().empty()) put(" mesh ", graph_.mesh());
  put("\n");
  declarations(-1, -1);
  NodeId next = 0;
  for (const Run& run : find_runs(graph_, lines_)) {
    if (run.same_as == nullptr && !run.repeats) continue;
    range(next, run.first() - 1);
    block(run);
    next = run.last() + 1;
  }
  range(next, graph_.size() - 1);
  return std::move(out_);
}

void Printer::range(NodeId first, NodeId last, bool with_lines) {
  for (NodeId id = first; id <= last; ++id) {
    node(id);
    if (with_lines) declarations(id, id);
  }
}

void Printer::block(const Run& run) {
  put(indent_, "block %", run.first(), " in ", path_text(run.block.path), " (", join(run.reads),
      ")");
  if (run.same_as != nullptr) {
    put(" as %", run.same_as->first());
    if (run.stage != -1) put(" stage=", run.stage);
    put("\n");
  } else {
    put(" {\n");
    indent_ += "  ";
    range(run.first(), run.last(), run.carries_lines);
    indent_.resize(indent_.size() - 2);
    put(indent_, "}\n");
  }
  if (!run.body().carries_lines) declarations(run.first(), run.last());
}

void Printer::node(NodeId id) {
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

void Printer::attr(const AttrValue& value) {
  if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&value)) {
    put("{\n", Printer(**graph, indent_ + "    ").print(), indent_, "}");
  } else {
    put(value);
  }
}

void Printer::result(const Result& result) {
  put(result.type);
  if (result.placement) put(" at ", *result.placement);
  if (!result.logical.empty()) put(" of ", result.logical);
}

void Printer::marks(const Node& n) {
  if (!n.block.empty()) put(" @", path_text(n.block));
  if (n.phase != Phase::Forward) put(" ", kPhases[static_cast<std::size_t>(n.phase)]);
  if (n.stage != -1) put(" stage=", n.stage);
  if (!n.name.empty()) put(" name=", quoted(n.name));
  if (n.cotangent) put(n.cotangent->final ? " cotangent=" : " contribution=", n.cotangent->of);
  if (n.like != -1) put(" like=%", n.like);
  if (n.remat_of != -1) put(" remat_of=%", n.remat_of);
  if (n.where.line != 0 || *n.where.file != '\0')
    put(" ", path_text(n.where.file), ":", n.where.line);
}

/// The states and outputs that stand behind nodes first..last.
void Printer::declarations(NodeId first, NodeId last) {
  const auto [state_begin, state_end] = lines_.states_behind(first, last);
  for (std::size_t i = state_begin; i < state_end; ++i) state(graph_.states()[i]);
  const auto [output_begin, output_end] = lines_.outputs_behind(first, last);
  for (std::size_t i = output_begin; i < output_end; ++i) {
    const Output& output = graph_.outputs()[i];
    put(indent_, kOutputs[static_cast<std::size_t>(output.kind)], " ", quoted(output.name), " = ",
        output.value, "\n");
  }
}

void Printer::state(const State& state) {
  put(indent_, "state ", quoted(state.path), " = ", state.value, " ",
      kRoles[static_cast<std::size_t>(state.role)]);
  put(" ", kInits[static_cast<std::size_t>(state.init.kind)], "=", state.init.value);
  if (state.home) put(" home=", *state.home);
  if (state.use) put(" use=", *state.use);
  put("\n");
}

Lines::Lines(const Graph& graph) {
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
  place(graph.states(), states);
  place(graph.outputs(), outputs);
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

/// The same of the states and outputs behind them. `a_reads` and `b_reads` list what these mention,
/// too.
bool same_lines(const Graph& graph, const Lines& lines, const Run& a, const Run& b,
                const std::vector<ValueId>& a_reads, const std::vector<ValueId>& b_reads) {
  if (a_reads.size() != b_reads.size()) return false;
  const Carry carry(a.block, b.block, a_reads, b_reads);
  const auto same = [&](const auto& items, auto of_a, auto of_b) {
    if (of_a.second - of_a.first != of_b.second - of_b.first) return false;
    for (std::size_t i = of_a.first, j = of_b.first; i < of_a.second; ++i, ++j) {
      if (!(carry(items[i]) == items[j])) return false;
    }
    return true;
  };
  return same(graph.states(), lines.states_behind(a.first(), a.last()),
              lines.states_behind(b.first(), b.last())) &&
         same(graph.outputs(), lines.outputs_behind(a.first(), a.last()),
              lines.outputs_behind(b.first(), b.last()));
}

/// The outside values of a run, those that its states and outputs mention included.
std::vector<ValueId> reads_with_lines(const Graph& graph, const Lines& lines, const Run& run) {
  std::vector<ValueId> more;
  const auto mention = [&](const auto& items, auto of_run) {
    for (std::size_t i = of_run.first; i < of_run.second; ++i) {
      if (items[i].value.valid()) more.push_back(items[i].value);
    }
  };
  mention(graph.states(), lines.states_behind(run.first(), run.last()));
  mention(graph.outputs(), lines.outputs_behind(run.first(), run.last()));
  return outside_values(graph, run.block, more);
}

/// Runs of two nodes or more that lie in a block; a line that stands for one node would save
/// nothing.
std::vector<Run> split_runs(const Graph& graph) {
  std::vector<Run> runs;
  for (NodeId first = 0, end = 0; first < graph.size(); first = end) {
    const Node& front = graph.node(first);
    const std::string_view path = block_of(front.block);
    Run run{{std::string(path), {}}, front.stage};
    for (end = first; end < graph.size(); ++end) {
      const Node& node = graph.node(end);
      if (node.phase != front.phase || node.stage != front.stage || block_of(node.block) != path)
        break;
      run.block.nodes.push_back(end);
    }
    if (!path.empty() && end - first > 1) runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<Run> find_runs(const Graph& graph, const Lines& lines) {
  std::vector<Run> runs = split_runs(graph);
  std::unordered_map<std::uint64_t, std::vector<Run*>> by_hash;
  for (Run& run : runs) {
    run.reads = outside_values(graph, run.block);
    std::vector<Run*>& candidates = by_hash[structural_hash(graph, run.block)];
    const auto same = std::find_if(candidates.begin(), candidates.end(), [&](const Run* other) {
      return same_nodes(graph, *other, run);
    });
    if (same == candidates.end()) {
      candidates.push_back(&run);
    } else {
      run.same_as = *same;
      run.same_as->repeats = true;
    }
  }
  std::vector<std::vector<ValueId>> reads;
  std::unordered_map<const Run*, std::size_t> index;
  for (Run& run : runs) {
    index.emplace(&run, reads.size());
    reads.push_back(reads_with_lines(graph, lines, run));
    if (run.same_as == nullptr) continue;
    const std::vector<ValueId>& first = reads[index.at(run.same_as)];
    if (!same_lines(graph, lines, *run.same_as, run, first, reads.back()))
      run.same_as->carries_lines = false;
  }
  for (Run& run : runs) {
    if (run.body().carries_lines) run.reads = std::move(reads[index.at(&run)]);
  }
  return runs;
}

}  // namespace

}  // namespace tessera
