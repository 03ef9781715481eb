#pragma once
/// What the tests of ops share: operands of a row, runs of it in f64, comparison.

#include <vector>

#include "ops/cases.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/interpret.h"

namespace tessera::test {

using Tensors = std::vector<HostTensor>;

/// The operands of a row; floats in f64.
Tensors operands(const Case& c);
/// As many of its floats in `dtype` as the op takes, the others in f32: statistics, scalars.
Tensors operands_in(const Case& c, DType dtype);
/// Numbers of that fill, drawn for `seed`; floats in f64.
HostTensor filled(const Operand& operand, std::uint64_t seed);

/// The op on its operands as inputs "in0", "in1", ... of a graph.
struct Use {
  std::vector<Value> ins, outs;
};
Use use(Builder& builder, const Case& c);
Bindings bind(const Tensors& ins);

/// Operands of a row that get a gradient, and results through which one flows.
bool is_variable(const Case& c, int operand);
bool flows(const Case& c, int result, DType dtype);
/// True where the op has a gradient and the row an operand and a result for it.
bool is_differentiable(const Case& c);

/// The op of a row and what its `grad` builds: inputs in0, in1, ... and, for results through which
/// a gradient flows, cotangents dout0, ...; the gradients are outputs din0, ...
struct Derivative {
  Graph graph;
  NodeId forward = -1;
  std::vector<ValueId> ins, douts, dins;  // invalid: there is none
};
/// For the operands that are wanted.
Derivative differentiate(const Case& c, const std::vector<bool>& wanted);
/// For all that are variable.
Derivative differentiate(const Case& c);

/// The results of a graph's outputs in f64.
Tensors run(const Graph& graph, const Bindings& inputs, Coordinates at = {});
/// The op's results on these operands, in f64.
Tensors results(const Case& c, const Tensors& ins);

/// Numbers of one type agree: |got - want| <= absolute + relative * |want|; NaN and infinities
/// agree with themselves.
void expect_near(const HostTensor& got, const HostTensor& want, double absolute, double relative,
                 const std::string& what);
bool is_near(double got, double want, double absolute, double relative);

}  // namespace tessera::test
