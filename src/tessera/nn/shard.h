#pragma once
/// shard() of a function: a layer, or any part of a model.

#include <array>
#include <tuple>
#include <utility>

#include "tessera/ops/elementwise.h"

namespace tessera {

/// `fn`, a function of Values that returns one, with its operands split as `ins` say and its result
/// as `outs` say; those for which nothing is said (an empty entry, or none) are left alone. What
/// lies inside follows from that, in ParallelMode::AutoParallel. A layer's parameters can be named
/// beside: OpShard{"layers.*.up.weight", {{4, 1}}}.
///
///   const auto up = shard([](Value x) { return linear(x, "up", 64); }, {{2, 1}}, {{2, 4}});
///   Value y = up(x);
template <typename Function>
auto shard(Function fn, Splits ins, Splits outs = {}) {
  return [fn = std::move(fn), ins = std::move(ins), outs = std::move(outs)](auto... operands) {
    const auto laid = [](Value value, const Splits& splits, std::size_t i) {
      if (i >= splits.size() || splits[i].empty()) return value;
      return identity(value).shard(Splits{splits[i]});
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
