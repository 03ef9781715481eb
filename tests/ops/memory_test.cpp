/// The columns about memory: results in the buffer of an operand, and results that are views of
/// one.

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "ops/harness.h"
#include "tessera/base/hash.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/shape_ops.h"

namespace tessera::test {

namespace {

RefOperand whole(HostTensor& tensor) {
  return {tensor.type(), tensor.bytes().data(), Shape::of(tensor.shape().ndim(), 0), tensor.shape(),
          tensor.shape()};
}

/// The reference kernel with result `place.result` in the buffer of operand `place.operand`.
Tensors run_in_place(const Case& c, const Graph& graph, NodeId node, InPlace place) {
  Tensors ins, outs;
  for (const HostTensor& in : operands(c)) ins.push_back(in.clone());
  for (const HostTensor& out : results(c, ins)) outs.emplace_back(out.type());
  const auto result = static_cast<std::size_t>(place.result),
             operand = static_cast<std::size_t>(place.operand);
  outs[result] = ins[operand];  // copies share their bytes
  std::vector<RefOperand> in_refs, out_refs;
  for (HostTensor& in : ins) in_refs.push_back(whole(in));
  for (HostTensor& out : outs) out_refs.push_back(whole(out));
  const int key = c.op->attrs.find("key");
  const OpCall op_call = graph.call(node);
  RefCall call(
      op_call, in_refs, out_refs,
      key < 0 ? 0 : random_key(1, std::get<std::string>(c.attrs[static_cast<std::size_t>(key)])));
  c.op->reference.f64(call);
  return outs;
}

}  // namespace

TEST(Memory, ResultsMayLieInOperands) {
  int checked = 0;
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(title(c));
    Builder builder;
    const NodeId node = use(builder, c).outs[0].id().node;
    const Graph graph = builder.finish();
    const Tensors ins = operands(c), want = results(c, ins);
    for (const InPlace place : c.op->in_place) {
      // An optional operand or result may be missing; one of another type is never shared.
      if (place.result < 0 || place.operand >= static_cast<int>(ins.size())) continue;
      if (place.result >= static_cast<int>(want.size())) continue;
      const auto result = static_cast<std::size_t>(place.result),
                 operand = static_cast<std::size_t>(place.operand);
      if (ins[operand].dtype() != want[result].dtype() ||
          ins[operand].numel() != want[result].numel())
        continue;
      HostTensor got(want[result].type());
      ++checked;
      Tensors outs = run_in_place(c, graph, node, place);
      for (std::size_t j = 0; j < want.size(); ++j) {
        std::memcpy(got.bytes().data(), outs[result].bytes().data(), got.bytes().size());
        expect_near(
            j == result ? got : outs[j], want[j], 0, 0,
            text("result ", j, ", with result ", place.result, " in operand ", place.operand));
      }
    }
  }
  RecordProperty("pairs", checked);
  EXPECT_GT(checked, 30);
}

namespace {

/// A tensor's elements in a larger buffer, at strides.
struct Strided {
  Shape strides;
  std::vector<double> buffer;

  Strided(const HostTensor& x, const Shape& at_strides) : strides(at_strides) {
    std::int64_t end = 1;
    for (int d = 0; d < x.shape().ndim(); ++d) end += (x.shape()[d] - 1) * strides[d];
    buffer.assign(static_cast<std::size_t>(end), -1e9);
    for_each_index(x.shape(), [&](const Shape& at, std::int64_t i) {
      buffer[static_cast<std::size_t>(offset(at, strides))] = x.at(i);
    });
  }
  static std::int64_t offset(const Shape& at, const Shape& strides) {
    std::int64_t out = 0;
    for (int d = 0; d < at.ndim(); ++d) out += at[d] * strides[d];
    return out;
  }
};

/// Dense; with gaps between rows; with the dims in reverse order in memory; with the last two dims
/// exchanged.
std::vector<Shape> layouts(const Shape& shape) {
  const int n = shape.ndim();
  std::vector<Shape> out = {shape.strides()};
  Shape gaps = shape, reversed = Shape::of(n, 1);
  if (n > 0) gaps[n - 1] += 3;
  out.push_back(gaps.strides());
  for (int d = 1; d < n; ++d) reversed[d] = reversed[d - 1] * shape[d - 1];
  out.push_back(reversed);
  if (n >= 3) {
    Shape swapped = shape;
    std::swap(swapped[n - 2], swapped[n - 3]);
    Shape strides = swapped.strides();
    std::swap(strides[n - 2], strides[n - 3]);
    out.push_back(strides);
  }
  return out;
}

}  // namespace

TEST(Memory, ViewsShowTheResult) {
  int views = 0;
  for (const Case& c : all_cases()) {
    if (c.op->view == nullptr) continue;
    SCOPED_TRACE(title(c));
    Builder builder;
    const NodeId node = use(builder, c).outs[0].id().node;
    const Graph graph = builder.finish();
    const Tensors ins = operands(c);
    const HostTensor want = results(c, ins)[0];
    bool dense = true;
    for (const Shape& strides : layouts(ins[0].shape())) {
      const Strided operand(ins[0], strides);
      const std::optional<View> view = c.op->view(graph.call(node), strides);
      EXPECT_TRUE(view || !dense) << "a dense operand needs no copy";
      dense = false;
      if (!view) continue;
      ++views;
      ASSERT_EQ(view->strides.ndim(), want.shape().ndim());
      for_each_index(want.shape(), [&](const Shape& at, std::int64_t i) {
        const std::int64_t from = view->offset + Strided::offset(at, view->strides);
        ASSERT_LT(from, static_cast<std::int64_t>(operand.buffer.size()));
        EXPECT_EQ(operand.buffer[static_cast<std::size_t>(from)], want.at(i))
            << "at strides " << to_text(strides);
      });
    }
  }
  RecordProperty("views", views);
  EXPECT_GT(views, 20);
}

/// Where strides do not allow a view, there is none.
TEST(Memory, ReshapeOfATransposedMatrixIsACopy) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {3, 4}, {}});
  reshape(x, {12});
  const Graph graph = builder.finish();
  EXPECT_FALSE(kReshape.view(graph.call(1), Shape{1, 3}));  // transposed
  EXPECT_FALSE(kReshape.view(graph.call(1), Shape{8, 1}));  // rows with gaps
  EXPECT_TRUE(kReshape.view(graph.call(1), Shape{4, 1}));
}

}  // namespace tessera::test
