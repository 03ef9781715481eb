/// Functions that are composed of ops, such as gather_nd: against plain loops on
/// whole tensors, their gradients against finite differences, and under every sharding of every
/// operand on simulated ranks against one device.

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <set>

#include "ops/harness.h"
#include "ops/sharded.h"
#include "tessera/base/hash.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/top_k.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"

namespace tessera::test {

namespace {

/// Where an operand is cut.
struct Dim {
  int operand, dim;
  friend bool operator<(const Dim& a, const Dim& b) {
    return std::pair(a.operand, a.dim) < std::pair(b.operand, b.dim);
  }
};

struct Composed {
  std::string name;
  std::vector<Operand> ins;
  Value (*make)(const std::vector<Value>&);
  /// The same in plain loops.
  HostTensor (*want)(const Tensors&);
  /// Cuts for which nothing moves: values are computed where they lie, and partial ones summed.
  std::set<Dim> in_place = {};
};

/// A tensor of this type from a function of the index.
HostTensor tensor_of(DType dtype, const Shape& shape,
                     const std::function<double(const Shape&)>& at_index) {
  HostTensor out(dtype, shape);
  for_each_index(shape, [&](const Shape& at, std::int64_t i) { out.set(i, at_index(at)); });
  return out;
}

double element(const HostTensor& x, const Shape& at) {
  std::int64_t i = 0;
  for (int d = 0; d < at.ndim(); ++d) i = i * x.shape()[d] + at[d];
  return x.at(i);
}

/// x at the indices [..., k], by loops over the result.
HostTensor at_indices(const Tensors& in) {
  const HostTensor &indices = in[0], &x = in[1];
  const int lead = indices.shape().ndim() - 1, k = static_cast<int>(indices.shape().back());
  Shape shape;
  for (int d = 0; d < lead; ++d) shape.push_back(indices.shape()[d]);
  for (int d = k; d < x.shape().ndim(); ++d) shape.push_back(x.shape()[d]);
  return tensor_of(x.dtype(), shape, [&](const Shape& at) {
    Shape of_indices, of_x;
    for (int d = 0; d < lead; ++d) of_indices.push_back(at[d]);
    of_indices.push_back(0);
    for (int j = 0; j < k; ++j) {
      of_indices[lead] = j;
      const auto index = static_cast<std::int64_t>(element(indices, of_indices));
      if (index < 0 || index >= x.shape()[j]) return 0.0;
      of_x.push_back(index);
    }
    for (int d = lead; d < at.ndim(); ++d) of_x.push_back(at[d]);
    return element(x, of_x);
  });
}

Value gathered_nd(const std::vector<Value>& in) { return gather_nd(in[0], in[1]); }

/// The index of an operand's batch dims and its last two, where the product has these batch dims.
Shape operand_index(const Shape& operand, const Shape& at, std::int64_t row, std::int64_t column) {
  Shape out;
  for (int d = 0; d + 2 < operand.ndim(); ++d)
    out.push_back(operand[d] == 1 ? 0 : at[at.ndim() - operand.ndim() + d]);
  out.push_back(row);
  out.push_back(column);
  return out;
}

/// a x b for batch dims as numpy has them.
HostTensor batched_product(const Tensors& in) {
  const HostTensor &a = in[0], &b = in[1];
  Shape shape;
  for (int i = std::max(a.shape().ndim(), b.shape().ndim()) - 1; i >= 2; --i) {
    const auto size = [&](const Shape& s) { return i < s.ndim() ? s.back(i) : 1; };
    shape.push_back(std::max(size(a.shape()), size(b.shape())));
  }
  shape.push_back(a.shape().back(1));
  shape.push_back(b.shape().back());
  return tensor_of(DType::F64, shape, [&](const Shape& at) {
    double sum = 0;
    for (std::int64_t k = 0; k < a.shape().back(); ++k) {
      sum += element(a, operand_index(a.shape(), at, at.back(1), k)) *
             element(b, operand_index(b.shape(), at, k, at.back()));
    }
    return sum;
  });
}

Value product_of(const std::vector<Value>& in) { return matmul(in[0], in[1]); }

/// The place of the largest element of dim 1 of three.
HostTensor largest_places(const Tensors& in) {
  const HostTensor& x = in[0];
  return tensor_of(DType::I32, {x.shape()[0], x.shape()[2]}, [&](const Shape& at) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < x.shape()[1]; ++i) {
      if (element(x, {at[0], i, at[1]}) > element(x, {at[0], best, at[1]})) best = i;
    }
    return static_cast<double>(best);
  });
}

const Composed kComposed[] = {
    {"gather_nd, rows of two dims",
     {ids({3, 2}, -1, 5), normal({4, 4, 2})},
     gathered_nd,
     at_indices,
     {{0, 0}, {1, 2}}},
    {"gather_nd, elements", {ids({2, 3, 2}, 0, 4), normal({4, 5})}, gathered_nd, at_indices},
    {"gather_nd, one index of one dim",
     {ids({4, 1}, -1, 6), normal({6, 3})},
     gathered_nd,
     at_indices,
     {{0, 0}, {1, 1}}},
    {"arg_max of an inner dim",
     {ids({3, 5, 2}, 0, 4)},
     [](const std::vector<Value>& in) { return arg_max(in[0], 1); },
     largest_places,
     {{0, 0}, {0, 2}}},
    {"matmul, a batch dim of 1 on the left",
     {normal({1, 3, 4}), normal({4, 4, 2})},
     product_of,
     batched_product,
     {{0, 1}, {1, 0}, {1, 2}}},
    {"matmul, a batch dim of 1 on the right",
     {normal({2, 3, 2, 4}), normal({1, 3, 4, 3})},
     product_of,
     batched_product,
     {{0, 0}, {0, 2}, {1, 3}}},
    {"matmul, a batch dim of 1 on either side",
     {normal({2, 1, 3, 4}), normal({1, 4, 4, 2})},
     product_of,
     batched_product,
     {{0, 0}, {1, 1}}},
    {"matmul, batch dims that the left one lacks",
     {normal({3, 4}), normal({2, 1, 4, 3})},
     product_of,
     batched_product,
     {{0, 0}, {1, 0}}},
    {"matmul, transposed operands",
     {normal({1, 4, 3}), normal({2, 5, 4})},
     [](const std::vector<Value>& in) {
       return matmul(in[0], in[1], {.trans_a = true, .trans_b = true});
     },
     [](const Tensors& in) {
       const auto turned = [](const HostTensor& x) {
         const Shape& s = x.shape();
         return tensor_of(DType::F64, {s[0], s[2], s[1]}, [&](const Shape& at) {
           return element(x, {at[0], at[2], at[1]});
         });
       };
       return batched_product({turned(in[0]), turned(in[1])});
     }},
    {"gather_nd, one place", {ids({3}, 0, 3), normal({3, 3, 3, 2})}, gathered_nd, at_indices},
};

std::string operand_name(std::size_t i) { return text("in", i); }

bool is_variable(const Operand& operand) { return is_float(operand.type.dtype); }

/// The function of operands that are states, with output "y". Where y is of floats: the gradients
/// of sum(y * batch input "weights") with respect to them as next values.
Graph graph_of(const Composed& c, bool with_gradients) {
  Builder builder;
  std::vector<Value> ins, variables;
  for (std::size_t i = 0; i < c.ins.size(); ++i) {
    ins.push_back(builder.state(operand_name(i), c.ins[i].type, Role::Parameter, {}));
    if (is_variable(c.ins[i])) variables.push_back(ins.back());
  }
  const Value y = c.make(ins);
  builder.output(Output::Kind::Metric, "y", y);
  if (is_float(y.dtype())) {
    const Value loss = sum_all(y * builder.batch("weights", y.type()));
    builder.output(Output::Kind::Metric, "loss", loss);
    if (with_gradients) {
      const std::vector<Value> dins = gradients(loss, variables);
      for (std::size_t i = 0; i < dins.size(); ++i) builder.next(variables[i], dins[i]);
    }
  }
  return builder.finish();
}

Bindings inputs_of(const Composed& c, const Graph& graph) {
  Bindings out;
  for (std::size_t i = 0; i < c.ins.size(); ++i)
    out.states.emplace(operand_name(i), filled(c.ins[i], hash64(c.name, i)));
  const ValueId y = graph.outputs()[0].value;
  if (is_float(graph.type(y).dtype))
    out.batch.emplace("weights", filled(normal(graph.type(y).shape), hash64(c.name, 99)));
  return out;
}

std::map<std::string, HostTensor> outputs_of(const Graph& graph, const Bindings& inputs) {
  const Tensors values = run(graph, inputs);
  std::map<std::string, HostTensor> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Output& output = graph.outputs()[i];
    out.emplace((output.kind == Output::Kind::Next ? "next " : "") + output.name, values[i]);
  }
  return out;
}

/// Every way to give each axis of the mesh a dim of an operand to cut, or none.
std::vector<std::map<std::string, Dim>> cuts_of(const Composed& c, const Mesh& mesh) {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < c.ins.size(); ++i) {
    for (int d = 0; d < c.ins[i].type.ndim(); ++d) dims.push_back({static_cast<int>(i), d});
  }
  std::vector<std::map<std::string, Dim>> out = {{}};
  for (const Axis& axis : mesh.axes()) {
    std::vector<std::map<std::string, Dim>> more = out;
    for (const auto& one : out) {
      for (const Dim& dim : dims) {
        more.push_back(one);
        more.back()[axis.name] = dim;
      }
    }
    out = std::move(more);
  }
  return out;
}

Strategy strategy_of(const Composed& c, const Mesh& mesh, const std::map<std::string, Dim>& cuts) {
  Strategy out{mesh, {}};
  std::vector<Sharding> shardings;
  for (const Operand& operand : c.ins)
    shardings.push_back(Sharding::replicated(operand.type.ndim()));
  for (const auto& [axis, dim] : cuts) {
    Sharding& one = shardings[static_cast<std::size_t>(dim.operand)];
    one = one.with(axis, dim.dim);
  }
  for (std::size_t i = 0; i < shardings.size(); ++i)
    out.pins.push_back({operand_name(i), shardings[i]});
  return out;
}

/// Collectives that move values between ranks, other than by reducing partial ones.
std::string moves(const Program& program) {
  std::string out;
  for (const Region& region : program.regions) {
    for (const Node& node : region.graph.nodes()) {
      for (const std::string_view name : {"all_gather", "all_to_all", "permute"}) {
        if (node.op->name == name) out += text(name, " ");
      }
    }
  }
  return out;
}

}  // namespace

TEST(Composed, EqualPlainLoops) {
  for (const Composed& c : kComposed) {
    SCOPED_TRACE(c.name);
    const Graph graph = graph_of(c, false);
    const Bindings inputs = inputs_of(c, graph);
    Tensors ins;
    for (std::size_t i = 0; i < c.ins.size(); ++i) ins.push_back(inputs.states.at(operand_name(i)));
    expect_near(run(graph, inputs)[0], c.want(ins), 1e-12, 1e-12, "y");
  }
}

TEST(Composed, GradientsEqualFiniteDifferences) {
  constexpr double kStep = 1e-6;
  for (const Composed& c : kComposed) {
    const Graph forward = graph_of(c, false), whole = graph_of(c, true);
    if (!is_float(forward.type(forward.outputs()[0].value).dtype)) continue;
    SCOPED_TRACE(c.name);
    const Bindings inputs = inputs_of(c, forward);
    const std::map<std::string, HostTensor> outputs = outputs_of(whole, inputs);
    for (std::size_t i = 0; i < c.ins.size(); ++i) {
      if (!is_variable(c.ins[i])) continue;
      HostTensor want(DType::F64, c.ins[i].type.shape);
      for (std::int64_t k = 0; k < want.numel(); ++k) {
        const auto loss_at = [&](double change) {
          Bindings moved = inputs;
          HostTensor& x = moved.states.at(operand_name(i));
          x = x.clone();
          x.set(k, x.at(k) + change);
          return outputs_of(forward, moved).at("loss").at(0);
        };
        want.set(k, (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep));
      }
      // What torch's gradcheck takes.
      expect_near(outputs.at("next " + operand_name(i)), want, 1e-5, 1e-3,
                  text("the gradient of operand ", i));
    }
  }
}

TEST(Composed, EveryShardingEqualsOneDevice) {
  int equal = 0, refused = 0;
  for (const Composed& c : kComposed) {
    SCOPED_TRACE(c.name);
    const Graph graph = graph_of(c, true);
    const Bindings inputs = inputs_of(c, graph);
    const std::map<std::string, HostTensor> one = outputs_of(graph, inputs);
    for (const Mesh& mesh : test_meshes()) {
      if (mesh.axes().size() > 2) continue;  // each op has been tried there
      for (const auto& cuts : cuts_of(c, mesh)) {
        const Strategy strategy = strategy_of(c, mesh, cuts);
        std::string how = to_text(mesh);
        for (const Pin& pin : strategy.pins) how += text(", ", pin.values, " ", pin.sharding);
        SCOPED_TRACE(how);
        std::map<std::string, HostTensor> on_mesh;
        try {
          Interpretation f64;
          f64.f64 = true;
          on_mesh = interpret_program(partition(propagate(add_uses(graph), strategy)), inputs, f64);
        } catch (const Error& error) {  // a dim that a reshape merges, other than the first
          ASSERT_NE(std::string(error.what()).find("cannot be split by axis"), std::string::npos)
              << error.what();
          ++refused;
          continue;
        }
        for (const auto& [name, value] : one)
          expect_near(on_mesh.at(name), value, 1e-10, 1e-10, name);
        ASSERT_FALSE(has_failed());
        ++equal;
      }
    }
  }
  std::cout << equal << " shardings equal to one device, " << refused << " refused\n";
  EXPECT_GT(equal, 100);
}

/// Along such a cut the function is computed where its operands lie, forward and backward.
TEST(Composed, CutsInPlaceMoveNothing) {
  for (const Composed& c : kComposed) {
    const Mesh mesh({{"a", 2}});
    for (const Dim& dim : c.in_place) {
      SCOPED_TRACE(text(c.name, ", dim ", dim.dim, " of operand ", dim.operand));
      Strategy strategy = strategy_of(c, mesh, {{"a", dim}});
      std::erase_if(strategy.pins, [&](const Pin& pin) {
        return pin.values != operand_name(static_cast<std::size_t>(dim.operand));
      });
      strategy.cut_outputs = {"y"};
      EXPECT_EQ(moves(partition(propagate(add_uses(graph_of(c, true)), strategy))), "");
    }
  }
}

}  // namespace tessera::test
