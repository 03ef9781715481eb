#pragma once
/// Nodes of local graphs as lines of one function, by the table of ops.
///
/// All ranks of a stage run one module: rank r is replica r. What differs among ranks, or among
/// micro-batches, is looked up in a table, by the replica's number; where all agree, it is a
/// constant.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/function_ref.h"
#include "tessera/hlo/code.h"
#include "tessera/hlo/options.h"
#include "tessera/ir/graph.h"

namespace tessera::hlo {

class Emitter {
 public:
  /// `mesh`: of the graphs, axes of time included. Code and mesh outlive it.
  Emitter(Code& code, const Mesh& mesh, const EmitOptions& options)
      : code(code), mesh(mesh), options(options) {}

  Code& code;
  const Mesh& mesh;
  const EmitOptions& options;
  /// Which micro-batch runs, an i64 scalar; nothing outside of the loop.
  std::optional<Value> microbatch;
  /// The key of the random op that is written, where it is an argument of a function.
  std::optional<Value> key;

  // Graphs.
  /// Gives the values of leaves: batch, state, slot, receive.
  using Leaves = FunctionRef<Value(const Node&)>;
  using Known = std::map<ValueId, Value>;
  /// All nodes; leaves that nobody reads are left out.
  Known graph(const Graph& graph, Leaves leaves);
  /// One node, whose operands are known; adds its results. Errors: Usage: an op, dtype or size that
  /// is not supported; the message names them and the block.
  void node(const Graph& graph, NodeId id, Leaves leaves, Known& known);

  // Numbers by rank, as i64 scalars.
  using OfRank = FunctionRef<std::int64_t(const Coordinates&)>;
  Value by_rank(OfRank number);
  /// Of its first element along a dim, in the whole tensor.
  Value offset(const Result& result, int dim);
  /// How many elements of the dim are real.
  Value valid(const Result& result, int dim);
  /// True where offset() is a multiple of `n` on every rank.
  bool is_offset_multiple(const Result& result, int dim, std::int64_t n) const;
  /// Where ids lie in this rank's part of a dim, as i32, and whether they do.
  std::pair<Value, Value> local_place(const Value& ids, const Result& result, int dim);
  /// [ids..., last dim of the result]: true where its logical index is the id.
  Value hits(const Value& ids, const Result& result);

  // Random numbers: Philox-4x32-10, as base/philox.h.
  /// Which element of the whole tensor each element is, dim by dim: the dims of a value, each with
  /// its logical size and where this rank begins.
  struct Counter {
    Shape shape;
    std::vector<std::int64_t> sizes;
    Values offsets;         // i64
    bool in_fours = false;  // blocks of four elements lie whole in a row of the last dim
  };
  Counter counter_of(const Result& result);
  /// Its own word of each element, u32.
  Value random_bits(const Value& key, const Counter& counter, const Value& step);
  /// In [0, 1), f32: a multiple of 2^-24.
  Value random_unit(const Value& key, const Counter& counter, const Value& step);
  /// Standard normal, f32, by Box and Muller in f64.
  Value random_normal(const Value& key, const Counter& counter, const Value& step);
  /// The key of a random op, ui64.
  Value key_of(const Node& node);

 private:
  /// Those that backward computes again are kept apart from what forward computed.
  Values operands(const Graph& graph, NodeId id, Known& known);
  Value replica();
  struct Words {
    Values words;  // four, of each element's block
    Value own;     // which of them is the element's; nothing in_fours, where words are by block
  };
  Words random_words(const Value& key, const Counter& counter, const Value& step);
  Value element_index(const Counter& counter, bool of_blocks);
  Value interleaved(const Values& four, const Shape& shape);
};

/// Of each node: true where another node or an output of the graph reads it.
std::vector<bool> nodes_read(const Graph& graph);

}  // namespace tessera::hlo
