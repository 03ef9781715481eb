#include "tessera/shard/repeated_dims.h"

#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

/// The operand as the call of matmul() had it; its node's, where that is the same.
const Shape& shape_in_call(const Graph& graph, const Node& product, std::size_t operand) {
  const ValueId input = product.inputs[operand];
  const Node& maker = graph.node(input.node);
  // Both are of one call.
  const bool reshaped = maker.op == &kReshape && maker.where == product.where;
  return graph.type(reshaped ? maker.inputs[0] : input).shape;
}

/// Takes from `list`, an entry for each dim of the call, those of dims that the node lacks: batch
/// dims of size 1 where `other`, the other operand of the call, has more.
template <typename T>
void take_repeated(const Shape& call, const Shape& other, const Shape& node, const T& whole,
                   std::vector<T>& list, const auto& wrong) {
  if (list.size() != at(call.ndim()) || call.ndim() == node.ndim()) return;
  for (int d = call.ndim() - 3; d >= 0; --d) {
    const int in_other = d + other.ndim() - call.ndim();
    if (call[d] != 1 || in_other < 0 || other[in_other] == 1) continue;
    if (list[at(d)] != whole) wrong(d);
    list.erase(list.begin() + d);
  }
}

}  // namespace

OpShard without_repeated_dims(const Graph& graph, NodeId id, OpShard shard) {
  const Node& node = graph.node(id);
  if (node.op != &kMatmul) return shard;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Shape &call = shape_in_call(graph, node, i), &other = shape_in_call(graph, node, 1 - i),
                &here = graph.type(node.inputs[i]).shape;
    const auto wrong = [&](int d) {
      fail(Fault::Usage, "op '", shard.ops, "' (matmul): dim ", d, " of input ", i, " of shape ",
           call, " has size 1 and is split; it must stay whole");
    };
    if (i < shard.ins.size())
      take_repeated<std::int64_t>(call, other, here, 1, shard.ins[i], wrong);
    if (i < shard.in_layouts.size())
      take_repeated<std::vector<int>>(call, other, here, {}, shard.in_layouts[i].map, wrong);
  }
  return shard;
}

}  // namespace tessera
