#include "ops/cases.h"

#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/ops/top_k.h"

namespace tessera::test {

namespace {

using Ints = std::vector<std::int64_t>;
using Fill = Operand::Fill;

Operand step(double number) { return exactly(number, DType::I64); }

/// What slice and pad take.
Attrs window(std::int64_t dim, std::int64_t start, std::int64_t size, std::int64_t step = 1) {
  return {dim, start, size, step};
}

}  // namespace

Operand normal(Shape shape) { return {{DType::F32, shape, {}}, Fill::Normal}; }
Operand positive(Shape shape) { return {{DType::F32, shape, {}}, Fill::Positive}; }
Operand ids(Shape shape, int low, int high, DType dtype) {
  return {{dtype, shape, {}}, Fill::Ids, static_cast<double>(low), static_cast<double>(high)};
}
Operand bits(Shape shape) { return {{DType::Bool, shape, {}}, Fill::Bits}; }
Operand exactly(double value, DType dtype, Shape shape) {
  return {{dtype, shape, {}}, Fill::Exactly, value};
}
Operand made(Shape shape, Operand::Make make) {
  return {{DType::F32, shape, {}}, Fill::Made, 0, 0, std::move(make)};
}

std::vector<Case> elementwise_cases() {
  std::vector<Case> out = {
      {&kAdd, "", {normal({3, 5}), normal({3, 5})}},
      {&kAdd, "a bias", {normal({2, 3, 5}), normal({5})}},
      {&kAdd, "both operands repeat", {normal({4, 1}), normal({1, 3})}},
      {&kAdd, "a scalar", {normal({}), normal({4})}},
      {&kAdd, "integers", {ids({4, 3}, -9, 9), ids({3}, -9, 9)}},
      {&kSub, "", {normal({3, 4}), normal({3, 4})}},
      {&kSub, "the second repeats", {normal({2, 3, 4}), normal({3, 1})}},
      {&kMul, "", {normal({3, 4}), normal({3, 4})}},
      {&kMul, "the first repeats", {normal({4}), normal({3, 4})}},
      {&kMul, "long integers", {ids({5}, -9, 9, DType::I64), ids({5}, -9, 9, DType::I64)}},
      {&kDiv, "", {normal({3, 4}), positive({3, 4})}},
      {&kDiv, "a row of denominators", {normal({3, 4}), positive({3, 1})}},
      {&kDiv, "of integers", {ids({3, 4}, -9, 9, DType::I64), ids({3, 4}, 1, 4, DType::I64)}},
      {&kMaximum, "", {normal({3, 5}), normal({3, 5})}},
      {&kMaximum, "against a scalar", {normal({3, 5}), normal({})}},
      {&kMinimum, "", {normal({3, 5}), normal({3, 5})}},
      {&kMinimum, "against a row", {normal({3, 5}), normal({5})}},
      {&kPower, "", {positive({3, 4}), normal({3, 4})}},
      {&kPower, "one exponent", {positive({3, 4}), normal({})}},
      {&kNegate, "", {normal({3, 5})}},
      {&kExp, "", {normal({3, 5})}},
      {&kLog, "", {positive({3, 5})}},
      {&kSqrt, "", {positive({3, 5})}},
      {&kRsqrt, "", {positive({3, 5})}},
      {&kTanh, "", {normal({3, 5})}},
      {&kErf, "", {normal({3, 5})}},
      {&kCos, "", {normal({3, 5})}},
      {&kAbs, "", {normal({3, 5})}},
      {&kSigmoid, "", {normal({3, 5})}},
      {&kIdentity, "", {normal({3, 5})}},
      {&kWholeBatch, "", {normal({3, 5})}},
      {&kStopGradient, "", {normal({3, 5})}},
      {&kGradient, "", {normal({3, 5})}, {std::string("layers.0.weight")}},
      {&kRelu, "", {normal({4, 5})}},
      {&kSilu, "", {normal({4, 5})}},
      {&kSiluGrad, "", {normal({4, 5}), normal({4, 5})}},
      {&kGelu, "by erf", {normal({4, 5})}, {false}},
      {&kGelu, "by tanh", {normal({4, 5})}, {true}},
      {&kGeluGrad, "by erf", {normal({4, 5}), normal({4, 5})}, {false}},
      {&kGeluGrad, "by tanh", {normal({4, 5}), normal({4, 5})}, {true}},
      {&kLogicalNot, "", {bits({5, 3})}},
      {&kIsFinite, "", {normal({5, 3})}},
      {&kSelect, "", {bits({3, 4}), normal({3, 4}), normal({3, 4})}},
      {&kSelect, "all operands repeat", {bits({3, 1}), normal({1, 4}), normal({})}},
      {&kSelect, "a mask of two dims", {bits({4, 3}), normal({2, 4, 3}), normal({3})}},
      {&kSelect, "integers", {bits({4}), ids({4}, 0, 9), ids({4}, 0, 9)}},
      {&kCast, "to f64", {normal({3, 4})}, {DType::F64}},
      {&kCast, "to i32", {normal({3, 4})}, {DType::I32}},
      {&kCast, "from bool", {bits({3, 4})}, {DType::F32}},
      {&kCast, "i32 to i64", {ids({3, 4}, -9, 9)}, {DType::I64}},
  };
  for (const OpDef* op : {&kEqual, &kNotEqual, &kLess, &kLessEqual}) {
    out.push_back({op, "", {ids({4, 5}, 0, 3), ids({4, 5}, 0, 3)}});
    out.push_back({op, "floats against a row", {normal({4, 5}), normal({5})}});
  }
  for (const OpDef* op : {&kLogicalAnd, &kLogicalOr}) {
    out.push_back({op, "", {bits({4, 5}), bits({4, 5})}});
    out.push_back({op, "against a column", {bits({4, 5}), bits({4, 1})}});
  }
  return out;
}

std::vector<Case> basic_cases() {
  constexpr std::int64_t zero = 0, five = 5, seven = 7;
  return {
      {&kSum, "the last dim", {normal({3, 5})}, {Ints{1}, false}},
      {&kSum, "the last dim, kept", {normal({3, 5})}, {Ints{1}, true}},
      {&kSum, "outer dims", {normal({3, 4, 5})}, {Ints{0, 2}, false}},
      {&kSum, "outer dims, kept", {normal({3, 4, 5})}, {Ints{0, 2}, true}},
      {&kSum, "all dims", {normal({3, 5})}, {Ints{0, 1}, false}},
      {&kSum, "into f32", {normal({3, 5})}, {Ints{0}, false, DType::F32}},
      {&kSum, "integers", {ids({5, 4}, -9, 9)}, {Ints{0}, false}},
      {&kMax, "the last dim", {normal({3, 5})}, {Ints{1}, false}},
      {&kMax, "the first dim, kept", {normal({3, 5})}, {Ints{0}, true}},
      {&kMax, "all dims", {normal({2, 3, 4})}, {Ints{0, 1, 2}, false}},
      {&kMax, "integers", {ids({4, 5}, -9, 9)}, {Ints{1}, false}},
      {&kMax, "any", {bits({4, 5})}, {Ints{1}, false}},
      {&kMin, "the last dim", {normal({3, 5})}, {Ints{1}, false}},
      {&kMin, "the first dim, kept", {normal({3, 5})}, {Ints{0}, true}},
      {&kMin, "integers", {ids({4, 5}, -9, 9)}, {Ints{0}, false}},
      {&kMin, "all", {bits({2, 5, 2})}, {Ints{0, 2}, true}},
      {&kBroadcast, "a row", {normal({5})}, {Ints{3, 5}}},
      {&kBroadcast, "an inner dim", {normal({3, 1, 4})}, {Ints{2, 3, 5, 4}}},
      {&kBroadcast, "a scalar", {normal({})}, {Ints{4, 3}}},
      {&kAddN, "", {normal({3, 5}), normal({3, 5}), normal({3, 5})}},
      {&kSumSquares, "", {normal({3, 5})}},
      {&kAddN, "one value", {normal({3})}},

      {&kReshape, "splits a dim", {normal({3, 8})}, {Ints{3, 4, 2}}},
      {&kReshape, "merges dims", {normal({3, 4, 5})}, {Ints{3, 20}}},
      {&kReshape, "merges one end and splits the other", {normal({4, 2, 6})}, {Ints{8, 3, 2}}},
      {&kReshape, "dims of size 1 come and go", {normal({3, 1, 5})}, {Ints{1, 3, 5, 1}}},
      {&kReshape, "dims overlap", {normal({8, 4})}, {Ints{2, 16}}},
      {&kReshape, "dims share only a divisor", {normal({6, 4})}, {Ints{4, 6}}},
      {&kReshape, "a result dim that no cut divides", {normal({4, 6})}, {Ints{2, 3, 4}}},
      {&kReshape, "to one dim", {normal({2, 3, 4})}, {Ints{24}}},
      {&kReshape, "a scalar", {normal({1, 1})}, {Ints{}}},
      {&kReshape, "integers", {ids({4, 6}, 0, 9)}, {Ints{4, 2, 3}}},
      {&kTranspose, "a matrix", {normal({3, 5})}, {Ints{1, 0}}},
      {&kTranspose, "heads", {normal({2, 5, 3, 4})}, {Ints{0, 2, 1, 3}}},
      {&kTranspose, "a cycle", {normal({2, 3, 5})}, {Ints{2, 0, 1}}},
      {&kTranspose, "bools", {bits({3, 4})}, {Ints{1, 0}}},
      {&kSlice, "rows", {normal({5, 3})}, window(0, 1, 3)},
      {&kSlice, "the end of a row", {normal({3, 5})}, window(1, 3, 2)},
      {&kSlice, "an inner dim", {normal({2, 5, 3})}, window(1, 2, 2)},
      {&kSlice, "every second row", {normal({5, 3})}, window(0, 0, 3, 2)},
      {&kSlice, "every third of a row", {normal({4, 11})}, window(1, 1, 4, 3)},
      {&kSlice, "every second of an inner dim", {ids({3, 6, 2}, 0, 9)}, window(1, 1, 3, 2)},
      {&kDynamicSlice,
       "",
       {normal({3, 6}), exactly(2, DType::I32)},
       {std::int64_t{1}, std::int64_t{3}}},
      {&kDynamicSlice,
       "start too large",
       {normal({6, 3}), exactly(9, DType::I32)},
       {std::int64_t{0}, std::int64_t{4}}},
      {&kDynamicPad,
       "",
       {normal({3, 2}), exactly(1, DType::I32)},
       {std::int64_t{1}, std::int64_t{5}}},
      {&kDynamicPad,
       "start below 0",
       {normal({2, 3}), exactly(-3, DType::I32)},
       {std::int64_t{0}, std::int64_t{4}}},
      {&kDynamicUpdate,
       "",
       {normal({3, 6}), normal({3, 2}), exactly(3, DType::I32)},
       {std::int64_t{1}}},
      {&kDynamicUpdate,
       "start too large",
       {normal({6, 3}), normal({4, 3}), exactly(9, DType::I32)},
       {std::int64_t{0}}},
      {&kDynamicUpdate,
       "start below 0, an inner dim",
       {normal({2, 5, 3}), normal({2, 1, 3}), exactly(-2, DType::I32)},
       {std::int64_t{1}}},
      {&kDynamicUpdate,
       "all of it",
       {normal({4, 3}), normal({4, 3}), exactly(1, DType::I32)},
       {std::int64_t{0}}},
      {&kConcat, "rows", {normal({2, 3}), normal({1, 3}), normal({4, 3})}, {std::int64_t{0}}},
      {&kConcat, "columns", {normal({5, 2}), normal({5, 3})}, {std::int64_t{1}}},
      {&kPad, "rows", {normal({2, 3})}, window(0, 1, 5)},
      {&kPad, "an inner dim", {normal({2, 3, 4})}, window(1, 0, 4)},
      {&kPad, "in steps", {normal({3, 3})}, window(1, 1, 8, 3)},

      {&kGather, "", {ids({2, 5}, 0, 7), normal({7, 4})}, {std::int64_t{0}}},
      {&kGather, "ids that name nothing", {ids({3, 4}, -2, 8), normal({5, 3})}, {std::int64_t{0}}},
      {&kGather, "one id", {ids({}, 1, 5), normal({5, 3})}, {std::int64_t{0}}},
      {&kGather, "columns", {ids({5}, -1, 6), normal({3, 6})}, {std::int64_t{1}}},
      {&kGather, "an inner dim", {ids({2, 2}, -1, 6), normal({3, 5, 2})}, {std::int64_t{1}}},
      {&kGather, "a table of one dim", {ids({2, 3}, 0, 7), normal({7})}, {std::int64_t{0}}},
      {&kGather, "one id of columns", {ids({}, 1, 5), ids({3, 5}, 0, 9)}, {std::int64_t{1}}},
      {&kScatterAdd, "rows repeat", {ids({3, 5}, 0, 4), normal({3, 5, 2})}, {seven, zero}},
      {&kScatterAdd, "ids that name nothing", {ids({8}, -3, 7), normal({8, 3})}, {five, zero}},
      {&kScatterAdd, "columns", {ids({5}, -1, 4), normal({3, 5})}, {seven, std::int64_t{1}}},
      {&kScatterAdd,
       "an inner dim",
       {ids({2, 2}, -1, 6), normal({3, 2, 2, 2})},
       {five, std::int64_t{1}}},
      {&kScatterAdd, "into f32", {ids({3, 5}, 0, 4), normal({3, 5, 2})}, {seven, zero, DType::F32}},
      {&kScatterAdd,
       "onto a table",
       {ids({3, 5}, -1, 8), normal({3, 5, 2}), normal({7, 2})},
       {seven, zero},
       {},
       {2}},
      {&kScatterAdd, "into one dim", {ids({2, 3}, 0, 5), normal({2, 3})}, {five, zero}},
      {&kPick, "", {normal({2, 3, 5}), ids({2, 3}, 0, 5)}},
      {&kPick, "ids that name nothing", {normal({5, 4}), ids({5}, -2, 7)}},
      {&kPlace, "", {ids({2, 3}, 0, 5), normal({2, 3})}, {std::int64_t{5}}},
      {&kPlace, "ids that name nothing", {ids({6}, -2, 6), normal({6})}, {std::int64_t{4}}},
      {&kTakeAlong, "", {normal({2, 3, 5}), ids({2, 3, 2}, 0, 5)}},
      {&kTakeAlong, "ids that name nothing", {normal({5, 4}), ids({5, 3}, -2, 7)}},
      {&kAddAlong, "ids repeat", {ids({2, 3, 4}, 0, 3), normal({2, 3, 4})}, {five}},
      {&kAddAlong, "ids that name nothing", {ids({4, 3}, -2, 9), normal({4, 3})}, {seven}},
      {&kTopK, "", {normal({3, 2, 5})}, {std::int64_t{2}}},
      {&kTopK, "all of a row", {normal({5})}, {five}},
      {&kTopK, "integers that tie", {ids({4, 7}, 0, 3)}, {std::int64_t{3}}},
      {&kWithinCapacity, "", {ids({2, 6, 2}, -1, 3), normal({2, 6, 2})}, {std::int64_t{2}}},
      {&kWithinCapacity, "keys that tie", {ids({7, 3}, 0, 4), exactly(1, DType::F32, {7, 3})}, {std::int64_t{3}}},
      {&kOneHot, "", {ids({2, 5}, -1, 5)}, {std::int64_t{4}, DType::F32}},
      {&kOneHot, "integers", {ids({5}, 0, 4)}, {std::int64_t{4}, DType::I32}},
      {&kIota, "floats", {}, {Ints{3, 5}, std::int64_t{1}, DType::F32}},
      {&kIota, "integers", {}, {Ints{4, 3}, std::int64_t{0}, DType::I32}},

      {&kDropout, "", {normal({5, 7}), step(3)}, {0.4, std::string("layers.0.dropout")}},
      {&kDropout, "nothing is dropped", {normal({3, 4}), step(3)}, {0.0, std::string("dropout")}},
      {&kRandomUniform, "", {step(2)}, {Ints{5, 7}, std::string("noise")}},
      {&kRandomNormal, "", {step(2)}, {Ints{5, 7}, std::string("noise")}},
      {&kRandomTruncatedNormal, "", {step(2)}, {Ints{5, 7}, std::string("noise")}},

      {&kMatmul, "", {normal({4, 5}), normal({5, 3})}, {std::string("m k, k n -> m n")}},
      {&kMatmul,
       "a shared weight",
       {normal({2, 3, 5}), normal({5, 4})},
       {std::string("b s k, k n -> b s n")}},
      {&kMatmul,
       "the weight transposed",
       {normal({2, 3, 5}), normal({4, 5})},
       {std::string("b s k, n k -> b s n")}},
      {&kMatmul,
       "a batch of heads",
       {normal({2, 3, 2, 4}), normal({2, 5, 2, 4})},
       {std::string("b s h e, b t h e -> b h s t")}},
      {&kMatmul,
       "the gradient of a weight",
       {normal({2, 3, 5}), normal({2, 3, 4})},
       {std::string("b s k, b s n -> k n")}},
      {&kMatmul,
       "into f32",
       {normal({4, 5}), normal({5, 3})},
       {std::string("m k, k n -> m n"), DType::F32}},
      {&kMatmul,
       "onto a sum",
       {normal({2, 3, 5}), normal({2, 3, 4}), normal({5, 4})},
       {std::string("b s k, b s n -> k n")},
       {},
       {2}},
      {&kGroupedMatmul,
       "",
       {ids({2, 3}, 0, 4), normal({2, 3, 5}), normal({4, 5, 3})},
       {false, false, false, std::int64_t{4}}},
      {&kGroupedMatmul,
       "a row for several ids, some of which name nothing",
       {ids({5, 2}, -1, 5), normal({5, 3}), normal({4, 7, 3})},
       {true, true, false, std::int64_t{4}}},
      {&kGroupedMatmul,
       "groups without rows",
       {ids({7}, 2, 4), normal({7, 3}), normal({5, 3, 2})},
       {false, false, true, std::int64_t{5}}},
      {&kGroupedOuter,
       "",
       {ids({2, 3}, 0, 4), normal({2, 3, 5}), normal({2, 3, 3})},
       {std::int64_t{4}, std::int64_t{4}}},
      {&kGroupedOuter,
       "a row for several ids, some of which name nothing",
       {ids({5, 2}, -1, 5), normal({5, 3}), normal({5, 2, 4})},
       {std::int64_t{4}, std::int64_t{4}}},
      {&kGroupedOuter,
       "in f32",
       {ids({5, 2}, 0, 3), normal({5, 2, 3}), normal({5, 4})},
       {std::int64_t{3}, std::int64_t{3}, DType::F32}},
      {&kGroupedOuter,
       "onto a value",
       {ids({7}, -1, 3), normal({7, 3}), normal({7, 4}), normal({3, 3, 4})},
       {std::int64_t{3}, std::int64_t{3}},
       {},
       {3}},
      {&kMatmul, "an inner product", {normal({5}), normal({5})}, {std::string("k, k -> ")}},
      {&kMatmul, "an outer product", {normal({3}), normal({5})}, {std::string("m, n -> m n")}},
  };
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> kCases = [] {
    std::vector<Case> out;
    for (const auto& family : {elementwise_cases(), basic_cases(), model_cases()}) {
      out.insert(out.end(), family.begin(), family.end());
    }
    return out;
  }();
  return kCases;
}

std::string title(const Case& c) {
  return c.name.empty() ? std::string(c.op->name) : text(c.op->name, ": ", c.name);
}

}  // namespace tessera::test
