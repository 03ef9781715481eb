#include "tessera/passes/simplify.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "tessera/ir/hasher.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/interpret.h"
#include "tessera/ops/random.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size(), false);
  for (const Output& output : graph.outputs())
    live[static_cast<std::size_t>(output.value.node)] = true;
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    // States and batch inputs stay, whether they are read or not.
    if (node.op == &kState || node.op == &kBatch) live[static_cast<std::size_t>(id)] = true;
    if (!live[static_cast<std::size_t>(id)]) continue;
    for (const ValueId input : node.inputs) live[static_cast<std::size_t>(input.node)] = true;
  }
  return live;
}

bool may_merge(const Node& node) {
  // Copies and collectives are not merged: each is where its reader wants it.
  return node.name.empty() && node.op != &kGradient && !is_transfer(*node.op) &&
         node.op != &kState && node.op != &kBatch;
}

/// `inputs` and `remat_of` are of the new graph.
std::uint64_t structural_hash(const Node& node, const ValueIds& inputs, NodeId remat_of) {
  Hasher hash;
  hash.add(std::bit_cast<std::uintptr_t>(node.op));
  for (const ValueId input : inputs) hash.add(input);
  for (const AttrValue& attr : node.attrs) hash.add(attr);
  hash.add(ValueId{remat_of, node.stage});
  return hash.value();
}

bool same(const Node& a, const Node& b, const ValueIds& b_inputs, NodeId b_remat_of) {
  return a.op == b.op && a.phase == b.phase && a.remat_of == b_remat_of && a.stage == b.stage &&
         a.inputs == b_inputs && a.results == b.results && a.name == b.name && a.attrs == b.attrs;
}

class Simplifier {
 public:
  explicit Simplifier(const Graph& graph) : rewrite_(graph), live_(live_nodes(graph)) {}

  Graph run() {
    const Graph& from = rewrite_.from();
    for (NodeId id = 0; id < from.size(); ++id) {
      if (live_[static_cast<std::size_t>(id)] && !fold(id) && !merge(id)) rewrite_.copy(id);
    }
    return rewrite_.finish();
  }

 private:
  /// Scalars of constants become constants where that changes no bit: a program computes them in
  /// their dtypes, the interpreter also with f64 for f32, and one constant must serve both.
  bool fold(NodeId id) {
    const Node& node = rewrite_.from().node(id);
    if (!node.op->traits.elementwise || is_random(*node.op) || node.inputs.empty() ||
        node.results.size() != 1 || !node.name.empty()) {
      return false;
    }
    const auto foldable = [](const TensorType& t) {
      return t.ndim() == 0 &&
             (t.dtype == DType::F32 || t.dtype == DType::F64 || t.dtype == DType::I32);
    };
    if (!foldable(node.type()) || node.op == &kGradient) return false;
    std::vector<HostTensor> ins, wide_ins;
    for (const ValueId input : node.inputs) {
      const Node& source = rewrite_.to().node(rewrite_(input));
      if (source.op != &kConstant || !foldable(source.type())) return false;
      HostTensor value(source.type());
      TensorType in_f64 = source.type();
      if (in_f64.dtype == DType::F32) in_f64.dtype = DType::F64;
      HostTensor wide_value(in_f64);
      value.set(0, std::get<double>(source.attrs[0]));
      wide_value.set(0, std::get<double>(source.attrs[0]));
      ins.push_back(std::move(value));
      wide_ins.push_back(std::move(wide_value));
    }
    const HostTensor computed = evaluate(*node.op, ins, node.attrs)[0];
    Interpretation wide;
    wide.f64 = true;
    const double value = evaluate(*node.op, wide_ins, node.attrs, wide)[0].at(0);
    HostTensor rounded(node.type());
    rounded.set(0, value);
    if (!std::ranges::equal(rounded.bytes(), computed.bytes())) return false;
    Builder& to = rewrite_.to();
    to.set_mark({node.block, node.phase, node.stage, node.where});
    const Value constant = to.constant(value, node.type().dtype);
    if (node.results[0].placement) to.set_placement(constant, *node.results[0].placement);
    rewrite_.map({id, 0}, constant);
    return true;
  }

  bool merge(NodeId id) {
    const Node& node = rewrite_.from().node(id);
    if (!may_merge(node)) return false;
    ValueIds inputs;
    for (const ValueId input : node.inputs) inputs.push_back(rewrite_(input).id());
    const bool copy = node.remat_of >= 0 && rewrite_.has({node.remat_of, 0});
    const NodeId remat_of = copy ? rewrite_({node.remat_of, 0}).id().node : -1;
    auto& bucket = seen_[structural_hash(node, inputs, remat_of)];
    for (const NodeId other : bucket) {
      if (!same(rewrite_.to().so_far().node(other), node, inputs, remat_of)) continue;
      for (int i = 0; i < static_cast<int>(node.results.size()); ++i) {
        rewrite_.map({id, i}, Value(rewrite_.to(), {other, i}));
      }
      return true;
    }
    bucket.push_back(rewrite_.to().so_far().size());  // the copy that the caller makes next
    return false;
  }

  Rewrite rewrite_;
  std::vector<bool> live_;
  std::unordered_map<std::uint64_t, std::vector<NodeId>> seen_;
};

}  // namespace

Graph simplify(const Graph& graph) { return Simplifier(graph).run(); }

}  // namespace tessera
