/// Numbers worked out by hand, where a kernel, its gradient and its rule could all be wrong
/// together.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "ops/harness.h"
#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/top_k.h"

namespace tessera::test {

namespace {

using Ints = std::vector<std::int64_t>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

HostTensor f32(Shape shape, const std::vector<float>& values) {
  return HostTensor::of(shape, values);
}
HostTensor i32(Shape shape, const std::vector<std::int32_t>& values) {
  return HostTensor::of(shape, values);
}
HostTensor flags(Shape shape, const std::vector<int>& values) {
  HostTensor out(DType::Bool, shape);
  for (std::size_t i = 0; i < values.size(); ++i) out.set(static_cast<std::int64_t>(i), values[i]);
  return out;
}

struct Known {
  const char* name;
  const OpDef* op;
  Tensors ins;
  Attrs attrs;
  HostTensor out;
};

std::vector<Known> known_values() {
  const std::int64_t zero = 0, one = 1, two = 2, three = 3, four = 4;
  const HostTensor x23 = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  return {
      {"a bias is added to each row",
       &kAdd,
       {x23, f32({3}, {10, 20, 30})},
       {},
       f32({2, 3}, {11, 22, 33, 14, 25, 36})},
      {"integers divide towards zero",
       &kDiv,
       {i32({2}, {7, -7}), i32({2}, {2, 2})},
       {},
       i32({2}, {3, -3})},
      {"integers have every quotient",
       &kDiv,
       {i32({4}, {7, 0, -7, std::numeric_limits<std::int32_t>::min()}), i32({4}, {0, 0, 0, -1})},
       {},
       i32({4}, {0, 0, 0, std::numeric_limits<std::int32_t>::min()})},
      {"relu keeps NaN", &kRelu, {f32({4}, {-1, 0, 2, kNan})}, {}, f32({4}, {0, 0, 2, kNan})},
      {"silu of 1 is 1 / (1 + 1/e)", &kSilu, {f32({2}, {1, 0})}, {}, f32({2}, {0.73105858f, 0})},
      {"gelu of 1 is the normal distribution's 84.1%",
       &kGelu,
       {f32({2}, {1, -1})},
       {false},
       f32({2}, {0.84134475f, -0.15865525f})},
      {"gelu by tanh of 1",
       &kGelu,
       {f32({2}, {1, -1})},
       {true},
       f32({2}, {0.84119199f, -0.15880801f})},
      {"NaN equals nothing",
       &kEqual,
       {f32({3}, {1, 2, kNan}), f32({3}, {1, 3, kNan})},
       {},
       flags({3}, {1, 0, 0})},
      {"NaN differs from all",
       &kNotEqual,
       {f32({2}, {1, kNan}), f32({2}, {1, kNan})},
       {},
       flags({2}, {0, 1})},
      {"less", &kLess, {f32({3}, {1, 2, 3}), f32({}, {2})}, {}, flags({3}, {1, 0, 0})},
      {"less or equal",
       &kLessEqual,
       {f32({3}, {1, 2, 3}), f32({}, {2})},
       {},
       flags({3}, {1, 1, 0})},
      {"and",
       &kLogicalAnd,
       {flags({4}, {0, 0, 1, 1}), flags({4}, {0, 1, 0, 1})},
       {},
       flags({4}, {0, 0, 0, 1})},
      {"or",
       &kLogicalOr,
       {flags({4}, {0, 0, 1, 1}), flags({4}, {0, 1, 0, 1})},
       {},
       flags({4}, {0, 1, 1, 1})},
      {"not", &kLogicalNot, {flags({2}, {0, 1})}, {}, flags({2}, {1, 0})},
      {"finite", &kIsFinite, {f32({4}, {1, kInf, -kInf, kNan})}, {}, flags({4}, {1, 0, 0, 0})},
      {"select never touches what is not chosen",
       &kSelect,
       {flags({2}, {1, 0}), f32({2}, {1, kNan}), f32({}, {7})},
       {},
       f32({2}, {1, 7})},
      {"floats are truncated and saturate",
       &kCast,
       {f32({6}, {1.9f, -1.9f, 3e9f, -3e9f, kNan, kInf})},
       {DType::I32},
       i32({6}, {1, -1, 2147483647, -2147483647 - 1, 0, 2147483647})},
      {"all but 0 is true",
       &kCast,
       {f32({3}, {0, 0.1f, -2})},
       {DType::Bool},
       flags({3}, {0, 1, 1})},
      {"true is 1", &kCast, {flags({2}, {0, 1})}, {DType::F32}, f32({2}, {0, 1})},

      {"columns sum", &kSum, {x23}, {Ints{0}, false}, f32({3}, {5, 7, 9})},
      {"rows sum", &kSum, {x23}, {Ints{1}, true}, f32({2, 1}, {6, 15})},
      {"an empty sum is 0", &kSum, {f32({2, 0}, {})}, {Ints{1}, false}, f32({2}, {0, 0})},
      {"NaN is the larger",
       &kMaximum,
       {f32({4}, {1, kNan, kNan, -kInf}), f32({4}, {kNan, 1, kNan, 2})},
       {},
       f32({4}, {kNan, kNan, kNan, 2})},
      {"NaN is the smaller",
       &kMinimum,
       {f32({4}, {1, kNan, kNan, -kInf}), f32({4}, {kNan, 1, kNan, 2})},
       {},
       f32({4}, {kNan, kNan, kNan, -kInf})},
      {"rows of nothing", &kRmsNorm, {f32({2, 0}, {}), f32({0}, {})}, {1e-5}, f32({2, 0}, {})},
      {"one mean square of two dims",
       &kRmsNorm,
       {f32({1, 2, 2}, {3, -3, 3, 3}), f32({2, 2}, {1, 2, 3, 4})},
       {0.0},
       f32({1, 2, 2}, {1, -2, 3, 4})},
      {"negative maxima",
       &kMax,
       {f32({2, 2}, {-3, -1, -5, -kInf})},
       {Ints{1}, false},
       f32({2}, {-1, -5})},
      {"NaN is the maximum",
       &kMax,
       {f32({3, 2}, {1, kNan, kNan, 1, 1, 2})},
       {Ints{1}, false},
       f32({3}, {kNan, kNan, 2})},
      {"NaN is the minimum",
       &kMin,
       {f32({3, 2}, {1, kNan, kNan, 1, 1, 2})},
       {Ints{1}, false},
       f32({3}, {kNan, kNan, 1})},
      {"any of each row",
       &kMax,
       {flags({3, 2}, {0, 1, 0, 0, 1, 1})},
       {Ints{1}, false},
       flags({3}, {1, 0, 1})},
      {"all of each column, and of none",
       &kMin,
       {flags({2, 3}, {0, 1, 1, 0, 1, 0})},
       {Ints{0}, true},
       flags({1, 3}, {0, 1, 0})},
      {"all of nothing", &kMin, {flags({2, 0}, {})}, {Ints{1}, false}, flags({2}, {1, 1})},
      {"a column repeats",
       &kBroadcast,
       {f32({2, 1}, {1, 2})},
       {Ints{2, 3}},
       f32({2, 3}, {1, 1, 1, 2, 2, 2})},

      {"a transposed matrix", &kTranspose, {x23}, {Ints{1, 0}}, f32({3, 2}, {1, 4, 2, 5, 3, 6})},
      {"result dim i is operand dim permutation[i]",
       &kTranspose,
       {f32({1, 2, 3}, {1, 2, 3, 4, 5, 6})},
       {Ints{2, 0, 1}},
       f32({3, 1, 2}, {1, 4, 2, 5, 3, 6})},
      {"a window", &kSlice, {x23}, {one, one, two, one}, f32({2, 2}, {2, 3, 5, 6})},
      {"every second column", &kSlice, {x23}, {one, zero, two, two}, f32({2, 2}, {1, 3, 4, 6})},
      {"a start too large is moved back",
       &kDynamicSlice,
       {x23, i32({}, {5})},
       {one, two},
       f32({2, 2}, {2, 3, 5, 6})},
      {"a start below 0 is moved up",
       &kDynamicSlice,
       {x23, i32({}, {-5})},
       {one, two},
       f32({2, 2}, {1, 2, 4, 5})},
      {"padded in the middle",
       &kPad,
       {f32({1, 2}, {1, 2})},
       {one, one, four, one},
       f32({1, 4}, {0, 1, 2, 0})},
      {"zeros between",
       &kPad,
       {f32({1, 2}, {1, 2})},
       {one, one, four, two},
       f32({1, 4}, {0, 1, 0, 2})},
      {"padded at a moved start",
       &kDynamicPad,
       {f32({2}, {1, 2}), i32({}, {9})},
       {zero, four},
       f32({4}, {0, 0, 1, 2})},
      {"a window is replaced",
       &kDynamicUpdate,
       {x23, f32({2, 1}, {7, 8}), i32({}, {1})},
       {one},
       f32({2, 3}, {1, 7, 3, 4, 8, 6})},
      {"a window that would not fit is replaced where it does",
       &kDynamicUpdate,
       {x23, f32({2, 2}, {7, 8, 9, 10}), i32({}, {2})},
       {one},
       f32({2, 3}, {1, 7, 8, 4, 9, 10})},
      {"columns joined", &kConcat, {f32({2, 1}, {1, 4}), f32({2, 2}, {2, 3, 5, 6})}, {one}, x23},

      {"ids out of range read zeros",
       &kGather,
       {i32({4}, {1, -1, 2, 0}), f32({2, 2}, {1, 2, 3, 4})},
       {zero},
       f32({4, 2}, {3, 4, 0, 0, 0, 0, 1, 2})},
      {"columns by id",
       &kGather,
       {i32({3}, {2, 0, 3}), x23},
       {one},
       f32({2, 3}, {3, 1, 0, 6, 4, 0})},
      {"ids stand where the dim stood",
       &kGather,
       {i32({2, 1}, {1, 0}), f32({1, 2, 2}, {1, 2, 3, 4})},
       {one},
       f32({1, 2, 1, 2}, {3, 4, 1, 2})},
      {"columns that repeat are summed",
       &kScatterAdd,
       {i32({3}, {2, 0, 2}), x23},
       {three, one},
       f32({2, 3}, {2, 0, 4, 5, 0, 10})},
      {"ids out of range write nothing",
       &kScatterAdd,
       {i32({4}, {1, -1, 3, 1}), f32({4, 1}, {1, 2, 4, 8})},
       {three, zero},
       f32({3, 1}, {0, 9, 0})},
      {"one of each row", &kPick, {x23, i32({2}, {2, 3})}, {}, f32({2}, {3, 0})},
      {"several of each row",
       &kTakeAlong,
       {x23, i32({2, 2}, {2, 2, 3, 0})},
       {},
       f32({2, 2}, {3, 3, 0, 4})},
      {"several into each row, summed where they meet",
       &kAddAlong,
       {i32({2, 2}, {1, 1, -1, 0}), f32({2, 2}, {5, 6, 7, 8})},
       {two},
       f32({2, 2}, {0, 11, 8, 0})},
      {"the largest first, NaN before all",
       &kTopK,
       {f32({2, 4}, {1, 3, -kInf, 3, 5, kNan, kInf, 7})},
       {two},
       f32({2, 2}, {3, 3, kNan, kInf})},
      {"the largest keys stay, NaN before all",
       &kWithinCapacity,
       {i32({4, 2}, {0, 1, 1, 0, 0, -1, 1, 0}), f32({4, 2}, {1, 3, kNan, 2, 2, 9, 4, 0})},
       {two},
       i32({4, 2}, {-1, -1, 1, 0, 0, -1, 1, -1})},
      {"of equal keys the first stay",
       &kWithinCapacity,
       {i32({2, 3}, {5, 5, 5, 7, 5, 7}), f32({2, 3}, {1, 1, 1, 1, 1, 1})},
       {std::int64_t{1}},
       i32({2, 3}, {5, -1, -1, 7, -1, -1})},
      {"a capacity of none",
       &kWithinCapacity,
       {i32({1, 2}, {0, 1}), f32({1, 2}, {1, 1})},
       {zero},
       i32({1, 2}, {-1, -1})},
      {"one into each row",
       &kPlace,
       {i32({2}, {1, -1}), f32({2}, {5, 6})},
       {two},
       f32({2, 2}, {0, 5, 0, 0})},
      {"one hot",
       &kOneHot,
       {i32({3}, {1, 3, 0})},
       {three, DType::I32},
       i32({3, 3}, {0, 1, 0, 0, 0, 0, 1, 0, 0})},
      {"counts rows", &kIota, {}, {Ints{2, 2}, zero, DType::I32}, i32({2, 2}, {0, 0, 1, 1})},
      {"counts columns", &kIota, {}, {Ints{2, 2}, one, DType::F32}, f32({2, 2}, {0, 1, 0, 1})},
  };
}

/// Results of an op that draws random numbers, in f32.
HostTensor drawn(const OpDef& op, Tensors ins, Attrs attrs, std::int64_t step,
                 std::uint64_t seed = 1) {
  ins.push_back(HostTensor::scalar<std::int64_t>(step));
  Interpretation how;
  how.seed = seed;
  return evaluate(op, ins, attrs, how)[0];
}

bool same(const HostTensor& a, const HostTensor& b) {
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (a.at(i) != b.at(i)) return false;
  }
  return true;
}

}  // namespace

TEST(KnownValues, OfOps) {
  for (const Known& row : known_values()) {
    SCOPED_TRACE(row.name);
    expect_near(evaluate(*row.op, row.ins, row.attrs)[0], row.out, 1e-7, 2e-7,
                std::string(row.op->name));
  }
}

/// The gradient at `x` of y = op(x), where that of y is 6.
HostTensor gradient_at(const OpDef& op, const std::function<Value(Value)>& apply,
                       const HostTensor& x_is) {
  Builder builder;
  const Value x = builder.batch("in0", x_is.type());
  const Value y = apply(x);
  const Value dy = builder.constant(6);
  const Graph forward = builder.so_far();
  const OpCall call = forward.call(y.id().node);
  const std::vector<Value> ins = {x}, outs = {y}, douts = {dy};
  std::vector<Value> dins(1);
  const bool wants[] = {true};
  GradCall grad(call, ins, outs, douts, dins, wants);
  op.grad(grad);
  builder.output(Output::Kind::Metric, "dx", dins[0]);
  Bindings inputs;
  inputs.batch.emplace("in0", x_is);
  return interpret(builder.finish(), inputs)[0];
}

/// Equal maxima share the gradient; at the corner of |x| it is 0, as in PyTorch.
TEST(KnownValues, GradientsAtTies) {
  expect_near(gradient_at(
                  kMax, [](Value x) { return max(x, 0); }, f32({3}, {2, 1, 2})),
              f32({3}, {3, 0, 3}), 0, 0, "max");
  expect_near(gradient_at(
                  kAbs, [](Value x) { return abs(x); }, f32({6}, {2, -1, 0, -0.0f, kInf, -kInf})),
              f32({6}, {6, -6, 0, 0, 6, -6}), 0, 0, "abs");
}

TEST(KnownValues, PlacesOfTheLargest) {
  const HostTensor x = f32({3, 4}, {1, 3, -kInf, 3, kNan, 7, kNan, kInf, 2, 2, 2, 2});
  expect_near(evaluate(kTopK, {x}, {std::int64_t{3}})[1], i32({3, 3}, {1, 3, 0, 0, 2, 3, 0, 1, 2}),
              0, 0, "ids");
}

TEST(Random, UniformTakesTheWordOfItsLogicalIndex) {
  const HostTensor u = drawn(kRandomUniform, {}, {Ints{3, 5}, std::string("noise")}, 7);
  const std::uint64_t key = random_key(1, "noise");
  for (std::int64_t i = 0; i < 15; ++i) {
    EXPECT_EQ(u.at(i), unit_float(philox(key, static_cast<std::uint64_t>(i / 4),
                                         7)[static_cast<std::size_t>(i % 4)]));
  }
}

TEST(Random, DependsOnKeySeedAndStepOnly) {
  const Attrs a = {Ints{64}, std::string("a")}, b = {Ints{64}, std::string("b")};
  const HostTensor first = drawn(kRandomNormal, {}, a, 1);
  EXPECT_TRUE(same(first, drawn(kRandomNormal, {}, a, 1)));
  EXPECT_FALSE(same(first, drawn(kRandomNormal, {}, b, 1)));
  EXPECT_FALSE(same(first, drawn(kRandomNormal, {}, a, 2)));
  EXPECT_FALSE(same(first, drawn(kRandomNormal, {}, a, 1, 2)));
}

TEST(Random, Moments) {
  constexpr std::int64_t kCount = 100'000;
  const HostTensor u = drawn(kRandomUniform, {}, {Ints{kCount}, std::string("u")}, 1);
  const HostTensor n = drawn(kRandomNormal, {}, {Ints{kCount}, std::string("n")}, 1);
  double mean = 0, mean_n = 0, square_n = 0, fourth_n = 0, neighbours = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    EXPECT_TRUE(u.at(i) >= 0 && u.at(i) < 1);
    EXPECT_TRUE(std::isfinite(n.at(i)));
    mean += u.at(i) / kCount;
    mean_n += n.at(i) / kCount;
    square_n += n.at(i) * n.at(i) / kCount;
    fourth_n += std::pow(n.at(i), 4) / kCount;
    if (i % 2 == 1) neighbours += n.at(i) * n.at(i - 1) / (kCount / 2);
  }
  // Four standard errors of 100,000 draws each.
  EXPECT_NEAR(mean, 0.5, 4 * 0.2887 / std::sqrt(kCount));
  EXPECT_NEAR(mean_n, 0, 4 / std::sqrt(kCount));
  EXPECT_NEAR(square_n, 1, 4 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourth_n, 3, 4 * std::sqrt(96.0 / kCount));
  EXPECT_NEAR(neighbours, 0, 4 / std::sqrt(kCount / 2.0));  // the two numbers of a pair
}

TEST(Random, DropoutDropsAShareAndScalesTheRest) {
  constexpr std::int64_t kCount = 10'000;
  HostTensor ones(DType::F32, {kCount});
  for (std::int64_t i = 0; i < kCount; ++i) ones.set(i, 1);
  const HostTensor y = drawn(kDropout, {ones}, {0.25, std::string("d")}, 1);
  const HostTensor u = drawn(kRandomUniform, {}, {Ints{kCount}, std::string("d")}, 1);
  double dropped = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    dropped += y.at(i) == 0;
    EXPECT_EQ(y.at(i), u.at(i) >= 0.25 ? static_cast<float>(1 / 0.75f) : 0);
  }
  EXPECT_NEAR(dropped / kCount, 0.25, 4 * std::sqrt(0.25 * 0.75 / kCount));
}

/// By the run's seed and the op's key, as without the body; on shards: "fused: rows" of cases.
TEST(Random, NumbersInsideFusedOpsAreThoseOfTheOp) {
  const Attrs attrs = {0.5, std::string("here")};
  Builder body;
  const Value x = body.batch("0", {DType::F32, {40}, {}});
  const Value step = body.batch("1", {DType::I64, {}, {}});
  body.output(Output::Kind::Metric, "y", body.add(kDropout, {x, step}, attrs) * 2.0);
  Builder builder;
  const std::vector<Value> ins = {builder.batch("x", {DType::F32, {40}, {}}),
                                  builder.batch("step", {DType::I64, {}, {}})};
  builder.output(Output::Kind::Metric, "fused",
                 fused(ins, std::make_shared<const Graph>(body.finish()))[0]);
  builder.output(Output::Kind::Metric, "alone", builder.add(kDropout, ins, attrs) * 2.0);
  const Graph graph = builder.finish();
  Bindings inputs;
  inputs.batch = {{"x", filled(normal({40}), 1)}, {"step", HostTensor(DType::I64, {})}};
  std::vector<HostTensor> drawn;
  for (const std::uint64_t seed : {1, 7}) {
    Interpretation how;
    how.seed = seed;
    const Tensors out = interpret(graph, inputs, how);
    expect_near(out[0], out[1], 0, 0, text("seed ", seed));
    drawn.push_back(out[0]);
  }
  EXPECT_FALSE(std::ranges::equal(drawn[0].bytes(), drawn[1].bytes()));
}

TEST(Random, KeysAreBlockPaths) {
  Builder builder;
  const Scope layer(builder, "layers"), block(builder, "3");
  const Value x = builder.batch("x", {DType::F32, {4}, {}}),
              step = builder.batch("step", {DType::I64, {}, {}});
  const Value y = dropout(x, step, 0.5, "residual");
  EXPECT_EQ(std::get<std::string>(builder.node(y).attrs[1]), "layers.3.residual");
  EXPECT_EQ(dropout(x, step, 0, "none").id(), x.id());
}

}  // namespace tessera::test
