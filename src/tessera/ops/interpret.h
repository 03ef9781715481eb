#pragma once
/// Runs a graph on one rank with reference kernels: no device, no threads. The meaning of a graph
/// is what this computes.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera {

/// Values of the inputs of a graph, by name.
struct Bindings {
  std::map<std::string, HostTensor, std::less<>> batch, states, slots;
};

struct Interpretation {
  bool f64 = false;        // compute every float in f64; 16-bit floats are not rounded either
  std::uint64_t seed = 1;  // of random ops
  Coordinates at;          // Local graphs: which shard
  bool whole = false;      // values are whole, whatever their placements: Form::Placed
  /// Of a body, whose values have no placements: the part of its space that is computed. Dims of
  /// values are those of it, aligned at the last. Null: all of it.
  const struct RefOperand* within = nullptr;
  /// Called after each node with its results, in order; may be empty.
  std::function<void(NodeId, const std::vector<HostTensor>&)> observe;
};

/// One node: an input, or the results that its reference kernel computes from operands.
std::vector<HostTensor> interpret_leaf(const Graph& graph, NodeId id, const Bindings& inputs,
                                       const Interpretation& how);
std::vector<HostTensor> interpret_node(const Graph& graph, NodeId id, std::vector<HostTensor> ins,
                                       const Interpretation& how);

/// The outputs, in the graph's order. Errors: an input that is not bound, or of another type.
std::vector<HostTensor> interpret(const Graph& graph, const Bindings& inputs,
                                  const Interpretation& how = {});

/// One op on given operands, unsharded: results as its reference kernel computes them.
std::vector<HostTensor> evaluate(const OpDef& op, const std::vector<HostTensor>& ins,
                                 const Attrs& attrs, const Interpretation& how = {});

}  // namespace tessera
