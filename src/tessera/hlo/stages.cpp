/// Programs of a pipeline's stages as modules.

#include <algorithm>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/hlo/levels.h"
#include "tessera/hlo/module_text.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"

namespace tessera::hlo {

namespace {

bool is_input(const Node& node) { return node.op->traits.leaf && node.op != &kConstant; }
/// Constants and the like: each piece that reads one makes its own.
bool is_free(const Node& node) { return !is_input(node) && node.inputs.empty(); }

/// A region of a stage in levels.
struct LeveledRegion {
  const Region* region = nullptr;
  std::vector<int> levels;   // by node
  std::vector<int> outputs;  // by output: of its value; of a next value also those of its readers
  const Graph& graph() const { return region->graph; }
  int most() const {
    const auto highest = std::ranges::max_element(outputs);
    return highest == outputs.end() ? 0 : *highest;
  }
};

/// What slots of one stage hold, by name.
struct StageSlots {
  std::map<std::string, Monoid> sums;
  std::set<std::string> of_loop;  // filled once for each micro-batch

  explicit StageSlots(const Program& program) {
    for (const Region& region : program.regions) {
      for (const Output& output : region.graph.outputs()) {
        if (output.kind == Output::Kind::Accumulate)
          sums[output.name] = reduction_over_time(region.graph.result(output.value));
        if (output.kind == Output::Kind::Slot && in_loop(region.kind)) of_loop.insert(output.name);
      }
    }
  }
};

/// One piece: the nodes of one level of a region.
class PieceWriter {
 public:
  PieceWriter(const std::string& name, const Program& program, const StageSlots& slots,
              const LeveledRegion& of, int level, const EmitOptions& options)
      : program_(program),
        slots_(slots),
        of_(of),
        graph_(of.graph()),
        level_(level),
        loops_(in_loop(of.region->kind)),
        text_(text(name, "_", program.name_of(*of.region), level == 0 ? "" : text("_", level)),
              program.mesh(), options) {
    if (loops_ && program.mesh().size(kMicrobatchAxis) > 1) {
      const Result number{{DType::I64, {}, {}}, {}, {}};
      text_.emitter().microbatch = text_.argument({Port::Kind::Microbatch, "", number});
    }
  }

  void keep_state(const std::string& path) { text_.keep(Port::Kind::State, path); }

  Module write() {
    read_inputs();
    const auto no_leaf = [](const Node& leaf) -> Value {
      throw Broken(text("a piece does not have '", leaf.op->name, "'"));
    };
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      const bool here = of_.levels[at(id)] == level_ && !is_input(node);
      if (here || (is_free(node) && wanted_.contains(id)))
        text_.emitter().node(graph_, id, no_leaf, known_);
    }
    write_outputs();
    write_carried();
    return text_.finish();
  }

 private:
  /// What nodes and outputs of this level read from outside becomes arguments.
  void read_inputs() {
    std::set<ValueId> read;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (of_.levels[at(id)] != level_ || is_input(graph_.node(id))) continue;
      for (const ValueId input : graph_.node(id).inputs) read.insert(input);
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (of_.outputs[i] == level_) read.insert(graph_.outputs()[i].value);
    }
    for (const ValueId v : read) {
      const Node& node = graph_.node(v.node);
      wanted_.insert(v.node);
      if (is_input(node)) {
        known_[v] = argument_of(port_of_input(node));
      } else if (of_.levels[at(v.node)] != level_ && !is_free(node)) {
        known_[v] = text_.argument(carried(v));
      }
    }
  }

  /// Several leaves may be the same state.
  Value argument_of(const Port& port) {
    const auto [found, fresh] = arguments_.try_emplace({port.kind, port.name});
    if (fresh) found->second = text_.argument(port);
    return found->second;
  }

  Port port_of_input(const Node& leaf) const {
    Port port = port_of_leaf(leaf);
    if (port.kind == Port::Kind::Message) return message(std::move(port));
    if (port.kind != Port::Kind::Slot) return port;
    if (const auto sum = slots_.sums.find(port.name); sum != slots_.sums.end()) {
      port.kind = Port::Kind::Sum;
      port.monoid = sum->second;
    }
    port.each_microbatch = slots_.of_loop.contains(port.name);
    return port;
  }

  Port message(Port port) const {
    const Program::Message& known = program_.message(port.name);
    port.from = known.from;
    port.to = known.to;
    port.each_microbatch = loops_;
    return port;
  }

  /// From one level of the region to a later one.
  Port carried(ValueId v) const {
    return {Port::Kind::Slot, text(program_.name_of(*of_.region), " ", v), graph_.result(v)};
  }

  void write_outputs() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (of_.outputs[i] != level_) continue;
      const Output& output = graph_.outputs()[i];
      Port port = port_of_output(graph_, output);
      Value value = known_.at(output.value);
      if (port.kind == Port::Kind::Message) port = message(std::move(port));
      if (port.kind == Port::Kind::Slot) port.each_microbatch = loops_;
      if (port.kind == Port::Kind::Sum) {
        port.monoid = slots_.sums.at(port.name);
        const Value before = argument_of(port);
        value = text_.code().binary(combining(port.monoid, value.element()), before, value);
      }
      text_.result(std::move(port), value);
    }
  }

  /// Values of this level that later ones read.
  void write_carried() {
    std::set<ValueId> later;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (of_.levels[at(id)] <= level_) continue;
      for (const ValueId input : graph_.node(id).inputs) later.insert(input);
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (of_.outputs[i] > level_) later.insert(graph_.outputs()[i].value);
    }
    for (const ValueId v : later) {
      const Node& node = graph_.node(v.node);
      if (of_.levels[at(v.node)] == level_ && !is_input(node) && !is_free(node))
        text_.result(carried(v), known_.at(v));
    }
  }

  const Program& program_;
  const StageSlots& slots_;
  const LeveledRegion& of_;
  const Graph& graph_;
  int level_;
  bool loops_;
  ModuleText text_;
  Emitter::Known known_;
  std::set<NodeId> wanted_;
  std::map<std::pair<Port::Kind, std::string>, Value> arguments_;
};

/// A region of every stage that has one of that kind, in levels; in the loop messages go one way,
/// from chunk to chunk, so all is one level.
void add_levels(const std::vector<Program>& stages, RegionKind kind,
                std::vector<std::vector<LeveledRegion>>& out) {
  std::vector<const Graph*> graphs;
  for (const Program& program : stages) graphs.push_back(&program.graph(kind));
  const std::vector<std::vector<int>> levels = levels_of(graphs);
  for (std::size_t s = 0; s < stages.size(); ++s)
    out[s].push_back({&stages[s].regions[at(stages[s].index_of(kind))], levels[s], {}});
}

/// An output comes when its value does; a next value not before what reads the state has run.
void level_outputs(LeveledRegion& of) {
  const Graph& graph = of.graph();
  for (const Output& output : graph.outputs()) {
    int level = of.levels[at(output.value.node)];
    for (NodeId id = 0; output.kind == Output::Kind::Next && id < graph.size(); ++id) {
      for (const ValueId input : graph.node(id).inputs) {
        const Node& leaf = graph.node(input.node);
        if (leaf.op == &kState && std::get<std::string>(leaf.attrs[0]) == output.name)
          level = std::max(level, of.levels[at(id)]);
      }
    }
    of.outputs.push_back(level);
  }
}

/// True where the region reads the state.
bool reads_state(const Graph& graph, const std::string& path) {
  const std::vector<bool> read = nodes_read(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (read[at(id)] && node.op == &kState && std::get<std::string>(node.attrs[0]) == path)
      return true;
  }
  return false;
}

/// What the sums of these pieces begin with: no arguments, and each Sum once as a result.
Module first_sums(const std::string& name, const std::vector<Piece>& pieces, const Mesh& mesh,
                  const EmitOptions& options) {
  ModuleText text(name, mesh, options);
  std::set<std::string> known;
  for (const Piece& piece : pieces) {
    for (const Port& port : piece.module.arguments) {
      if (port.kind != Port::Kind::Sum || !known.insert(port.name).second) continue;
      const Type type = type_of(port.result.type);
      text.result(port, text.code().identity(port.monoid, type.element, type.shape));
    }
  }
  return text.finish();
}

std::vector<Piece> pieces_of_stage(const std::string& name, const Program& program,
                                   const std::vector<LeveledRegion>& regions,
                                   const EmitOptions& options) {
  const StageSlots slots(program);
  std::vector<Piece> out;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    for (int level = 0; level <= regions[r].most(); ++level) {
      PieceWriter writer(name, program, slots, regions[r], level, options);
      for (const Output& output : regions[r].graph().outputs()) {
        const auto later = [&](const LeveledRegion& other) {
          return reads_state(other.graph(), output.name);
        };
        const bool again = in_loop(regions[r].region->kind);  // the next micro-batch reads it
        if (output.kind == Output::Kind::Next &&
            (again || std::any_of(regions.begin() + static_cast<std::ptrdiff_t>(r) + 1,
                                  regions.end(), later)))
          writer.keep_state(output.name);
      }
      Module module = writer.write();
      if (module.results.empty()) continue;
      out.push_back({regions[r].region->kind, regions[r].region->chunk, level, std::move(module)});
    }
  }
  Module sums = first_sums(text(name, "_sums"), out, program.mesh(), options);
  if (!sums.results.empty()) out.insert(out.begin(), {RegionKind::Begin, 0, 0, std::move(sums)});
  return out;
}

}  // namespace

std::vector<std::vector<Piece>> staged_modules(const std::string& name,
                                               const std::vector<Program>& stages,
                                               const EmitOptions& options) {
  std::vector<std::vector<LeveledRegion>> regions(stages.size());
  add_levels(stages, RegionKind::Begin, regions);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const Region& region : stages[s].regions) {
      if (in_loop(region.kind))
        regions[s].push_back({&region, std::vector<int>(region.graph.nodes().size(), 0), {}});
    }
  }
  add_levels(stages, RegionKind::Update, regions);
  std::vector<std::vector<Piece>> out;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (LeveledRegion& region : regions[s]) level_outputs(region);
    out.push_back(pieces_of_stage(text(name, "_stage", s), stages[s], regions[s], options));
  }
  return out;
}

}  // namespace tessera::hlo
