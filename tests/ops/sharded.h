#pragma once
/// Ops on simulated ranks: which shardings a factor rule admits, and one op under one of them.

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "ops/harness.h"

namespace tessera {
void PrintTo(const Mesh& mesh, std::ostream* out);  // for failures
}

namespace tessera::test {

using Axes = std::vector<std::string>;

/// The axes that shard each factor, major first. Along an axis that no factor has, ranks do the
/// same.
using Assignment = std::map<int, Axes>;

/// Every assignment of the mesh's axes to the factors of a rule that the rule admits: each axis to
/// one factor or to none. Axes on one factor are in every order where their sizes differ; among
/// axes of one size another order is the same sharding with other names.
///
/// Not admitted are `whole` factors; a factor inside a compound dim that its axes do not divide, or
/// whose more-major neighbours are not sharded to the end (a shard would not be one run of the
/// dim); and two kinds of reduction of one result, which do not commute.
std::vector<Assignment> admitted(const Factors& factors, const Mesh& mesh);

bool is_admitted(const Factors& factors, const Assignment& assignment, const Mesh& mesh);

/// True where an axis shards a factor that only the op's expansion can shard.
bool needs_expansion(const Factors& factors, const Assignment& assignment);

/// True where a shard has padding.
bool is_uneven(const Factors& factors, const Assignment& assignment, const Mesh& mesh);

/// True where a factor of size 1 is sharded: one rank holds all of it, the others padding.
bool shards_nothing(const Factors& factors, const Assignment& assignment);

/// How a value with these dims is sharded.
Sharding sharding_of(const Factors::Dims& dims, const Assignment& assignment);

/// "m on a.b, k on c of a=2 b=2 c=2"
std::string describe(const Factors& factors, const Assignment& assignment, const Mesh& mesh);

/// Meshes on which every admitted sharding is tried: a factor is cut in two, three, and several
/// times over; every two and every three factors at once.
std::vector<Mesh> test_meshes();
/// "Of2x2": names a test.
std::string mesh_name(const Mesh& mesh);
/// Meshes that reach the minor factors of compound dims: one axis takes a whole major factor.
std::vector<Mesh> meshes_of_compound_dims(const Factors& factors);

/// One use of an op with numbers: a row, or a node of its gradient or of an expansion.
struct Subject {
  std::string title;
  std::shared_ptr<const Graph> graph;  // the op alone, on inputs in0, in1, ...
  NodeId node = -1;
  Tensors ins, outs;  // whole; floats in f64

  const OpDef& op() const { return *graph->node(node).op; }
  Factors factors() const { return graph->factors(node); }
};
Subject subject_of(const Case& c);
/// Node `id` of a graph, on these numbers.
Subject subject_of(std::string title, const Graph& graph, NodeId id, Tensors ins, Tensors outs);

/// How one rank computes a node of a local graph on its shards.
using RunNode =
    std::function<Tensors(const Graph& local, NodeId node, const Tensors& ins, const Coordinates&)>;

/// What the ranks of the mesh compute together, each with its shards of `ins`: results put together
/// from shards, partial ones combined in rank order. Beyond the logical extents lie NaN and, in
/// integers, `garbage`. Fails the test where an element lies on no rank, or where replicas differ.
/// Ranks interpret in f64, unless `run_node` says otherwise.
Tensors run_on_ranks(const Graph& graph, NodeId node, const Tensors& ins, const Mesh& mesh,
                     const Assignment& assignment, double garbage = -999,
                     const RunNode& run_node = {});

/// True where an operand holds integers that may name something: what lies beyond the extent must
/// not matter, whatever it names.
bool has_integers(const Tensors& ins);

/// True after a failure: a loop over thousands of shardings stops at the first.
bool has_failed();

}  // namespace tessera::test
