// Ops of models by their own formulas, written here by hand, and the errors of their operands.
// What holds for every op (gradients, expansions, shards) is tested over cases.h.

#include <gtest/gtest.h>

#include <cmath>

#include "ops/harness.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera::test {

namespace {

HostTensor numbers(Shape shape, const std::vector<double>& values) {
  return HostTensor::of<double>(shape, values);
}

Interpretation f64() {
  Interpretation how;
  how.f64 = true;
  return how;
}

Tensors run_op(const OpDef& op, const Tensors& ins, const Attrs& attrs) {
  return evaluate(op, ins, attrs, f64());
}

HostTensor product(const char* rule, const HostTensor& a, const HostTensor& b) {
  return run_op(kMatmul, {a, b}, {std::string(rule)})[0];
}

/// What building `f` complains about; empty where it does not.
template <typename F>
std::string error_of(F&& f) {
  try {
    Builder builder;
    f(builder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Value input(Builder& builder, const char* name, Shape shape, DType dtype = DType::F32) {
  return builder.batch(name, {dtype, shape, {}});
}

bool says(const std::string& message, const char* part) {
  return message.find(part) != std::string::npos;
}

}  // namespace

TEST(Matmul, ByHand) {
  const HostTensor a = numbers({2, 3}, {1, 2, 3, 4, 5, 6}), b = numbers({3, 2}, {1, 0, 2, 1, 0, 3});
  const HostTensor want = numbers({2, 2}, {5, 11, 14, 23});
  const HostTensor at = numbers({3, 2}, {1, 4, 2, 5, 3, 6}),
                   bt = numbers({2, 3}, {1, 2, 0, 0, 1, 3});
  expect_near(product("m k, k n -> m n", a, b), want, 0, 0, "plain");
  expect_near(product("k m, k n -> m n", at, b), want, 0, 0, "a transposed");
  expect_near(product("m k, n k -> m n", a, bt), want, 0, 0, "b transposed");
  expect_near(product("m k, k n -> n m", a, b), numbers({2, 2}, {5, 14, 11, 23}), 0, 0,
              "the result transposed");
  expect_near(product("b m, b m -> b", a, a), numbers({2}, {14, 77}), 0, 0, "a row with itself");
  // Heads lie between batch and channels; each is a matrix of its own.
  const HostTensor heads = numbers({1, 2, 2, 1}, {1, 2, 3, 4});
  expect_near(product("b s h e, b t h e -> b h s t", heads, heads),
              numbers({1, 2, 2, 2}, {1, 3, 3, 9, 4, 8, 8, 16}), 0, 0, "heads");
}

TEST(Matmul, ComposesRules) {
  struct Row {
    const char* name;
    Shape a, b;
    MatmulOptions options;
    const char* rule;
    Shape out;
  };
  const Row rows[] = {
      {"matrices", {2, 3}, {3, 4}, {}, "m k, k n -> m n", {2, 4}},
      {"a shared weight [out, in]",
       {5, 2, 3},
       {4, 3},
       {false, true},
       "b0 m k, n k -> b0 m n",
       {5, 2, 4}},
      {"batches",
       {5, 6, 3, 2},
       {5, 6, 3, 4},
       {true, false},
       "b0 b1 k m, b0 b1 k n -> b0 b1 m n",
       {5, 6, 2, 4}},
      {"a batch dim of 1, which is left out",
       {5, 1, 3, 2},
       {1, 6, 2, 4},
       {},
       "b0 m k, b1 k n -> b0 b1 m n",
       {5, 6, 3, 4}},
      {"a batch dim of 1 on both sides",
       {1, 3, 2},
       {1, 2, 4},
       {},
       "b0 m k, b0 k n -> b0 m n",
       {1, 3, 4}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Builder builder;
    const Value y = matmul(input(builder, "a", row.a), input(builder, "b", row.b), row.options);
    EXPECT_EQ(std::get<std::string>(builder.node(y).attrs[0]), row.rule);
    EXPECT_EQ(y.shape(), row.out);
  }
}

TEST(Matmul, GradientsNeedNoTransposedResult) {
  Builder builder;
  const Value x = input(builder, "x", {2, 5, 3}), w = input(builder, "w", {4, 3}),
              dy = input(builder, "dy", {2, 5, 4});
  Builder forward;
  matmul(input(forward, "x", x.shape()), input(forward, "w", w.shape()), {false, true});
  const Graph graph = forward.finish();
  const Value y = matmul(x, w, {false, true});
  const Value ins[] = {x, w}, outs[] = {y}, douts[] = {dy};
  Value dins[2];
  const bool wants[] = {true, true};
  const OpCall call = graph.call(graph.size() - 1);
  GradCall grad(call, ins, outs, douts, dins, wants);
  kMatmul.grad(grad);
  const auto rule = [&](Value v) { return std::get<std::string>(builder.node(v).attrs[0]); };
  EXPECT_EQ(rule(dins[0]), "b0 m n, n k -> b0 m k");
  EXPECT_EQ(rule(dins[1]), "b0 m n, b0 m k -> n k");
  EXPECT_EQ(builder.node(dins[0]).like, y.id().node);
  EXPECT_EQ(builder.node(dins[1]).like, y.id().node);
}

TEST(Matmul, ClassifiesFactors) {
  Builder builder;
  const Value y = einsum("b s h e, b t h e -> b h s t", input(builder, "q", {2, 5, 3, 4}),
                         input(builder, "k", {2, 6, 3, 4}));
  const NodeId id = y.id().node;
  const Graph graph = builder.finish();
  const MatmulDims dims = matmul_dims(graph.call(id));
  const auto names = [&](const std::vector<int>& ids) {
    std::string out;
    for (const int f : ids) out += dims.factors.list[static_cast<std::size_t>(f)].name;
    return out;
  };
  EXPECT_EQ(names(dims.batch), "bh");
  EXPECT_EQ(names(dims.m), "s");
  EXPECT_EQ(names(dims.n), "t");
  EXPECT_EQ(names(dims.k), "e");
  EXPECT_EQ(kMatmul.flops(graph.call(id)), 2.0 * 2 * 5 * 6 * 3 * 4);
}

TEST(Matmul, Errors) {
  const auto of = [](const char* rule, Shape a, Shape b) {
    return error_of(
        [&](Builder& builder) { einsum(rule, input(builder, "a", a), input(builder, "b", b)); });
  };
  EXPECT_TRUE(says(of("m k, k n -> m n", {8, 16}, {32, 4}),
                   "matmul: contracted dims differ: a is f32[8,16], b is f32[32,4], k in "
                   "'m k, k n -> m n' is 16 and 32; transpose one of them"));
  EXPECT_TRUE(says(of("b m k, b k n -> b m n", {2, 8, 16}, {3, 16, 4}), "batch dims differ"));
  EXPECT_TRUE(says(of("m k, n -> m n", {8, 16}, {4}), "has k in one operand only"));
  EXPECT_TRUE(says(of("m k, k n -> m x", {8, 16}, {16, 4}), "has no operand with x"));
  EXPECT_TRUE(says(of("m k, k n -> m n", {2, 8, 16}, {16, 4}), "does not fit: a is f32[2,8,16]"));
  EXPECT_TRUE(says(of("m k k n", {8, 16}, {16, 4}), "is not like"));
  EXPECT_TRUE(says(of("m m, m n -> m n", {8, 8}, {8, 4}), "twice in one operand"));
  EXPECT_TRUE(says(of("(m k), k n -> m n", {8, 8}, {8, 4}), "reshape compound dims first"));
  EXPECT_TRUE(says(error_of([](Builder& b) {
                     matmul(input(b, "a", {1, 2, 3, 4}), input(b, "b", {5, 3, 4, 3}));
                   }),
                   "matmul: batch dims differ: a is f32[1,2,3,4], b is f32[5,3,4,3]"));
  EXPECT_TRUE(says(error_of([](Builder& b) {
                     matmul(input(b, "a", {4}), input(b, "b", {4, 3}));
                   }),
                   "a is f32[4], b is f32[4,3]; a needs"));
}

TEST(Adam, ByHand) {
  const auto step = [](bool decoupled, bool ok, double g) {
    return run_op(kAdam,
                  {numbers({1}, {2.0}), numbers({1}, {0.1}), numbers({1}, {0.04}),
                   numbers({1}, {g}), numbers({}, {0.1}), numbers({}, {0.5}), numbers({}, {0.19}),
                   numbers({}, {0.0199}), HostTensor::of<bool>({}, {ok})},
                  {0.9, 0.99, 1e-8, 0.2, decoupled});
  };
  for (const bool decoupled : {true, false}) {
    const double g = 0.5 * 3 + (decoupled ? 0 : 0.2 * 2), m = 0.9 * 0.1 + 0.1 * g,
                 v = 0.99 * 0.04 + 0.01 * g * g;
    const double move = m / 0.19 / (std::sqrt(v / 0.0199) + 1e-8) + (decoupled ? 0.2 * 2 : 0);
    const Tensors have = step(decoupled, true, 3);
    EXPECT_NEAR(have[0].at(0), 2 - 0.1 * move, 1e-14);
    EXPECT_NEAR(have[1].at(0), m, 1e-14);
    EXPECT_NEAR(have[2].at(0), v, 1e-14);
    // An overflow: the step is skipped, and what is not a number leaves no trace.
    const Tensors skipped = step(decoupled, false, std::nan(""));
    EXPECT_EQ(skipped[0].at(0), 2.0);
    EXPECT_EQ(skipped[1].at(0), 0.1);
    EXPECT_EQ(skipped[2].at(0), 0.04);
  }
}

TEST(Sgd, ByHand) {
  for (const bool nesterov : {true, false}) {
    const Tensors have =
        run_op(kSgd,
               {numbers({1}, {2.0}), numbers({1}, {0.3}), numbers({1}, {4.0}), numbers({}, {0.1}),
                numbers({}, {0.5}), HostTensor::of<bool>({}, {true})},
               {0.9, 0.2, nesterov});
    const double g = 0.5 * 4 + 0.2 * 2, u = 0.9 * 0.3 + g;
    EXPECT_NEAR(have[0].at(0), 2 - 0.1 * (nesterov ? g + 0.9 * u : u), 1e-14);
    EXPECT_NEAR(have[1].at(0), u, 1e-14);
  }
}

TEST(Attention, RowsWithoutKeysAreZero) {
  const HostTensor q = filled(normal({1, 3, 1, 1, 2}), 1), k = filled(normal({1, 3, 1, 2}), 2);
  const HostTensor mask =
      HostTensor::of<bool>({1, 3}, {false, true, true});  // the first query sees no key
  const Attrs attrs = {true, 1.0, 0.0, true, std::string()};
  const Tensors have = run_op(kAttention, {q, k, k, mask}, attrs);
  EXPECT_EQ(have[0].at(0), 0);
  EXPECT_EQ(have[0].at(1), 0);
  EXPECT_EQ(have[1].at(0), -INFINITY);
  EXPECT_EQ(have[0].at(2), k.at(2));  // the second sees one key: its value
  const Tensors grads = run_op(kAttentionGrad, {q, q, k, k, have[0], have[1], mask}, attrs);
  for (const HostTensor& grad : grads) {
    for (std::int64_t i = 0; i < grad.numel(); ++i) EXPECT_TRUE(std::isfinite(grad.at(i)));
  }
}

TEST(Attention, DropoutDependsOnStepAndKeepsTheMean) {
  const HostTensor q = filled(normal({2, 8, 2, 2, 4}), 1), k = filled(normal({2, 64, 2, 4}), 2);
  const HostTensor v = filled(exactly(1, DType::F32, {2, 64, 2, 4}), 3);
  const auto at = [&](std::int64_t step) {
    return run_op(kAttention, {q, k, v, HostTensor::scalar<std::int64_t>(step)},
                  {false, 0.1, 0.25, false, std::string("drop")})[0];
  };
  const HostTensor first = at(1), again = at(1), second = at(2);
  double sum = 0;
  int differ = 0;
  for (std::int64_t i = 0; i < first.numel(); ++i) {
    EXPECT_EQ(first.at(i), again.at(i));
    differ += first.at(i) != second.at(i);
    sum += first.at(i) / static_cast<double>(first.numel());
  }
  EXPECT_GT(differ, first.numel() / 2);
  // 64 rows of about 64 kept-or-dropped weights: standard error sqrt(0.25 / 0.75 / 64 / 64), five
  // of them.
  EXPECT_NEAR(sum, 1, 0.05);
}

TEST(Attention, Errors) {
  const auto of = [](Shape q, Shape k, AttentionOptions options) {
    return error_of([&](Builder& builder) {
      const Value key = input(builder, "k", k);
      attention(input(builder, "q", q), key, key, {}, {}, options);
    });
  };
  EXPECT_TRUE(says(of({2, 3, 2, 2, 4}, {2, 3, 4, 4}, {}),
                   "batch, key-value heads and head_dim must agree"));
  EXPECT_TRUE(says(of({2, 3, 4, 4}, {2, 3, 4, 4}, {}), "they need q [b, s, g, r, e]"));
  EXPECT_TRUE(says(error_of([](Builder& b) {
                     const Value key = input(b, "k", {2, 7, 2, 4});
                     attention(input(b, "q", {2, 3, 2, 2, 4}), key, key,
                               input(b, "mask", {2, 4, 7}, DType::Bool), {}, {});
                   }),
                   "the mask is bool[2,4,7]; it needs bool[2,7] (keys that all queries may see) or "
                   "bool[2,3,7]"));
  AttentionOptions backwards;
  backwards.window = -3;
  EXPECT_TRUE(says(of({2, 3, 2, 2, 4}, {2, 3, 2, 4}, backwards), "window is -3; it needs to be"));
  AttentionOptions upside_down;
  upside_down.cap = -1;
  EXPECT_TRUE(says(of({2, 3, 2, 2, 4}, {2, 3, 2, 4}, upside_down), "cap is -1; scores end there"));
  AttentionOptions dropped;
  dropped.dropout = 0.1;
  EXPECT_TRUE(says(of({2, 3, 2, 2, 4}, {2, 3, 2, 4}, dropped), "give the step too"));
  EXPECT_TRUE(
      says(error_of([](Builder& b) {
             rope(input(b, "x", {2, 3, 4, 5}), input(b, "p", {2, 3}, DType::I32));
           }),
           "rope: x is f32[2,3,4,5], 3 pairs of its channels are to be rotated; make head_dim "
           "even"));
  EXPECT_TRUE(says(error_of([](Builder& b) {
                     rope(input(b, "x", {2, 3, 4, 6}), input(b, "p", {2, 4}, DType::I32));
                   }),
                   "x is f32[2,3,4,6], positions are i32[2,4]"));
}

TEST(Attention, KeysOfDropoutNameTheBlock) {
  Builder builder;
  const Value q = input(builder, "q", {2, 3, 2, 2, 4}), k = input(builder, "k", {2, 3, 2, 4});
  const Value step = input(builder, "step", {}, DType::I64);
  AttentionOptions options;
  options.dropout = 0.1;
  const Scope layer(builder, "layers.1.attn");
  const AttentionResult out = attention(q, k, k, {}, step, options);
  EXPECT_EQ(std::get<std::string>(builder.node(out.y).attrs[4]), "layers.1.attn.dropout");
  EXPECT_EQ(std::get<double>(builder.node(out.y).attrs[1]), 0.5);
}

TEST(Softmax, Errors) {
  EXPECT_TRUE(says(error_of([](Builder& b) {
                     softmax(input(b, "x", {2, 3}), 2);
                   }),
                   "x is f32[2,3], dim is 2"));
  EXPECT_TRUE(says(error_of([](Builder& b) {
                     cross_entropy(input(b, "x", {2, 3}), input(b, "l", {3}, DType::I32));
                   }),
                   "logits are f32[2,3], labels are i32[3]"));
  EXPECT_TRUE(says(error_of([](Builder& b) {
                     layer_norm(input(b, "x", {2, 3}), input(b, "w", {2}), {});
                   }),
                   "x is f32[2,3], weight is f32[2]"));
  EXPECT_TRUE(says(error_of([](Builder& b) {
                     layer_norm(input(b, "x", {2, 3, 4}), input(b, "w", {2, 3}), {});
                   }),
                   "x is f32[2,3,4], weight is f32[2,3]; the weight needs the dtype of x and the"));
  EXPECT_TRUE(
      says(error_of([](Builder& b) {
             layer_norm(input(b, "x", {2, 3, 4}), input(b, "w", {3, 4}), input(b, "b", {12}));
           }),
           "layer_norm: weight is f32[3,4], bias is f32[12]"));
}

TEST(Softmax, StatisticsHaveNoGradient) {
  const auto of = [](const OpDef& op, const std::vector<TensorType>& types, const Attrs& attrs) {
    return error_of([&](Builder& builder) {
      Builder forward;
      std::vector<Value> ins, same;
      for (const TensorType& type : types) {
        ins.push_back(builder.batch(text(ins.size()), type));
        same.push_back(forward.batch(text(same.size()), type));
      }
      forward.add_all(op, same, attrs);
      const Graph graph = forward.finish();
      const std::vector<Value> outs = builder.add_all(op, ins, attrs);
      std::vector<Value> dins(ins.size());
      const bool wants[] = {true, true, true};
      const OpCall call = graph.call(graph.size() - 1);
      GradCall grad(call, ins, outs, outs, dins,
                    {wants, ins.size()});  // every result has a cotangent
      op.grad(grad);
    });
  };
  const TensorType x{DType::F32, {2, 3}, {}}, d{DType::F32, {3}, {}}, rows{DType::I32, {2}, {}};
  const TensorType q{DType::F32, {2, 3, 2, 2, 4}, {}}, k{DType::F32, {2, 3, 2, 4}, {}};
  EXPECT_TRUE(says(of(kLayerNorm, {x, d}, {1e-5}), "layer_norm: the gradient flows from y only"));
  EXPECT_TRUE(says(of(kRmsNorm, {x, d}, {1e-5}), "rms_norm: the gradient flows from y only"));
  EXPECT_TRUE(says(of(kCrossEntropy, {x, rows}, {std::int64_t{-100}}), "flows from the loss only"));
}

TEST(Fused, EqualsItsBody) {
  const TensorType x{DType::F32, {4, 5}, {}}, row{DType::F32, {5}, {}};
  Builder inside;
  {
    const Value a = inside.batch("0", x), b = inside.batch("1", row);
    inside.output(Output::Kind::Metric, "y", silu(a + b) * 0.5);
    inside.output(Output::Kind::Metric, "positive", less(b, a));
  }
  const auto body = std::make_shared<const Graph>(inside.finish());
  Builder builder;
  const Value a = builder.batch("a", x), b = builder.batch("b", row);
  const std::vector<Value> both = fused({a, b}, body);
  builder.output(Output::Kind::Metric, "y", both[0]);
  builder.output(Output::Kind::Metric, "want y", silu(a + b) * 0.5);
  builder.output(Output::Kind::Metric, "positive", both[1]);
  builder.output(Output::Kind::Metric, "want positive", less(b, a));
  const NodeId id = both[0].id().node;
  const Graph graph = builder.finish();
  EXPECT_EQ(to_text(graph.type({id, 1})), "bool[4,5]");
  EXPECT_GE(kFused.flops(graph.call(id)), 3.0 * 20);
  Bindings inputs;
  inputs.batch = {{"a", filled(normal({4, 5}), 1)}, {"b", filled(normal({5}), 2)}};
  for (const bool wide : {true, false}) {
    Interpretation how;
    how.f64 = wide;
    const Tensors out = interpret(graph, inputs, how);
    expect_near(out[0], out[1], 0, 0, "y");
    expect_near(out[2], out[3], 0, 0, "positive");
  }
}

TEST(Fused, RefusesOperandsThatItsBodyDoesNotTake) {
  Builder inside;
  inside.output(Output::Kind::Metric, "y", exp(inside.batch("0", {DType::F32, {4}, {}})));
  const auto body = std::make_shared<const Graph>(inside.finish());
  EXPECT_TRUE(says(error_of([&](Builder& b) { fused({input(b, "a", {5})}, body); }),
                   "operand 0 is f32[5], the body takes f32[4]"));
}

}  // namespace tessera::test
