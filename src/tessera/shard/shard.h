#pragma once
/// shard() of an op, and of a function: a layer, or any part of a model.

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tessera/ops/elementwise.h"
#include "tessera/shard/op_shard.h"

namespace tessera {

/// Says how the op that made `value` is split, once there is more than one device: per operand and
/// dim in how many parts, or a layout; and how its result is kept, which else is as the op makes
/// it. Returns the value. What was said is in shards_of().
///
///   Value y = shard(matmul(x, w), {{2, 4}, {4, 1}});
Value shard(Value value, Splits ins, Splits outs = {});
Value shard(Value value, std::vector<TensorLayout> ins, std::vector<TensorLayout> outs = {});

/// What shard() said of the ops of a graph under construction, for AutoParallel::shards.
std::vector<OpShard> shards_of(const Builder& builder);

/// `fn`, a function of Values that returns one, with its operands split as `ins` say and its result
/// as `outs` say; those for which nothing is said (an empty entry, or none) are left alone. What
/// lies inside follows from that, in ParallelMode::AutoParallel. A layer's parameters can be named
/// beside: OpShard{"layers.*.up.weight", {{4, 1}}}.
///
///   const auto up = shard([](Value x) { return linear(x, "up", 64); }, {{2, 1}}, {{2, 4}});
///   Value y = up(x);
template <typename Function>
requires(!std::is_same_v<Function, Value>) auto shard(Function fn, Splits ins, Splits outs = {}) {
  return [fn = std::move(fn), ins = std::move(ins), outs = std::move(outs)](auto... operands) {
    const auto laid = [](Value value, const Splits& splits, std::size_t i) {
      if (i >= splits.size() || splits[i].empty()) return value;
      return shard(identity(value), Splits{splits[i]});
    };
    require(ins.size() <= sizeof...(operands), "shard: ", ins.size(), " strategies for ",
            sizeof...(operands), " operands; give each operand one");
    require(outs.size() <= 1, "shard: ", outs.size(), " strategies for one result");
    std::size_t i = 0;
    // Braces keep the order of the operands.
    const std::array<Value, sizeof...(operands)> in{laid(operands, ins, i++)...};
    return laid(std::apply(fn, in), outs, 0);
  };
}

}  // namespace tessera
