#pragma once
/// How one op is written: the entries of the table, and what they are handed.

#include <optional>
#include <span>

#include "tessera/hlo/emitter.h"
#include "tessera/ir/op_def.h"

namespace tessera::hlo {

struct Emission;

/// A node being written: out() is called for each result, in order.
class Writing {
 public:
  Writing(Emitter& e, const Graph& graph, NodeId id, const Emission& entry, Values ins)
      : e(e),
        code(e.code),
        entry(entry),
        graph(graph),
        node(graph.node(id)),
        call(graph.call(id)),
        ins_(std::move(ins)) {}

  Emitter& e;
  Code& code;
  const Emission& entry;
  const Graph& graph;
  const Node& node;
  const OpCall call;

  int num_in() const { return static_cast<int>(ins_.size()); }
  const Value& in(int i) const { return ins_[static_cast<std::size_t>(i)]; }
  const Values& ins() const { return ins_; }
  /// As the graph has them: the types before anything was widened, and placements.
  const Result& operand(int i) const {
    return graph.result(node.inputs[static_cast<std::size_t>(i)]);
  }
  const Result& result(int i) const { return node.results[static_cast<std::size_t>(i)]; }
  Element result_element(int i) const { return element_of(result(i).type.dtype); }
  int dim(std::string_view attr = "dim") const { return static_cast<int>(call.integer(attr)); }

  void out(const Value& value) { outs_.push_back(value); }
  Values& outs() { return outs_; }

 private:
  Values ins_, outs_;
};

/// In which numbers an entry works.
enum class Numbers : std::uint8_t {
  AsTheyAre,
  Wide,  // it is handed 16-bit floats as f32, and what it makes is rounded to the results' types
};

enum class Source : std::uint8_t {
  Primitive,  // an op of StableHLO, or a few
  Expansion,  // as the op's own expansion says
  Formula,    // a composite op, written here: by places or counters of this rank, in blocks
};

struct Emission {
  const OpDef* op = nullptr;
  void (*write)(Writing&) = nullptr;
  const char* word = "";  // of StableHLO, for entries that share a function
  Numbers numbers = Numbers::AsTheyAre;
  Source source = Source::Primitive;
};

// The table, by theme.
std::span<const Emission> elementwise_emissions();
std::span<const Emission> reduction_emissions();
std::span<const Emission> product_emissions();
std::span<const Emission> move_emissions();
std::span<const Emission> index_emissions();
std::span<const Emission> random_emissions();
std::span<const Emission> model_emissions();
std::span<const Emission> attention_emissions();
std::span<const Emission> collective_emissions();

/// An op without an entry is written by its expansion. Null where it has none either.
const Emission* find_emission(const OpDef& op);

/// The results of a node on these operands. Errors: as Emitter::node.
Values emit_op(Emitter& e, const Graph& graph, NodeId id, const Values& ins);

}  // namespace tessera::hlo
