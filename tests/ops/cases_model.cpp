#include <limits>

#include "ops/cases.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/interpret.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/softmax.h"

namespace tessera::test {

namespace {

using Tensors = std::vector<HostTensor>;

/// Result `result` of `op` on some of the earlier operands: what a gradient is handed.
Operand result_of(const OpDef& op, std::vector<std::size_t> operands, Attrs attrs,
                  std::size_t result, Shape shape) {
  return made(shape, [=, &op](const Tensors& earlier) {
    Tensors ins;
    for (const std::size_t i : operands) ins.push_back(earlier[i]);
    Interpretation how;
    how.f64 = true;
    return evaluate(op, ins, attrs, how)[result];
  });
}

Attrs attention_attrs(bool causal, bool mask, double dropout = 0, std::int64_t window = 0,
                      double cap = 0, bool slopes = false) {
  return {causal, 0.4, dropout, mask, std::string(dropout > 0 ? "layers.0.attn.dropout" : ""),
          window, cap, slopes};
}

/// (dy, q, k, v, y, logsumexp) for b = 2, s, t, g = 2, r = 2, e = 4. Masks and dropout come after
/// them, so y and logsumexp are those without: the gradient's formulas hold for any.
std::vector<Operand> attention_grad_operands(std::int64_t s, std::int64_t t, bool causal,
                                             std::int64_t window = 0, double cap = 0) {
  const Shape q = {2, s, 2, 2, 4}, k = {2, t, 2, 4};
  const Attrs attrs = attention_attrs(causal, false, 0, window, cap);
  return {normal(q),
          normal(q),
          normal(k),
          normal(k),
          result_of(kAttention, {1, 2, 3}, attrs, 0, q),
          result_of(kAttention, {1, 2, 3}, attrs, 1, {2, 2, 2, s})};
}

std::vector<Operand> with(std::vector<Operand> operands, const std::vector<Operand>& more) {
  operands.insert(operands.end(), more.begin(), more.end());
  return operands;
}

Operand model_step() { return exactly(3, DType::I64); }

void add_norms(std::vector<Case>& out) {
  const Shape x = {2, 3, 5}, d = {5}, row = {2, 3, 1};
  const Attrs eps = {1e-5};
  out.push_back({&kLayerNorm, "", {normal(x), normal(d), normal(d)}, eps, {0}});
  out.push_back({&kLayerNorm, "without bias", {normal({4, 6}), normal({6})}, eps, {0}});
  out.push_back({&kLayerNorm, "one row", {normal({7}), normal({7})}, eps, {0}});
  for (const bool bias : {true, false}) {
    out.push_back({&kLayerNormGrad,
                   bias ? "" : "without bias",
                   {normal(x), normal(x), normal(d), result_of(kLayerNorm, {1, 2}, eps, 1, row),
                    result_of(kLayerNorm, {1, 2}, eps, 2, row)},
                   {bias}});
  }
  out.push_back({&kRmsNorm, "", {normal(x), normal(d)}, eps, {0}});
  const Shape dims = {3, 5}, matrix = {2, 1, 1};
  out.push_back({&kLayerNorm, "two dims", {normal(x), normal(dims), normal(dims)}, eps, {0}});
  out.push_back({&kLayerNorm, "all dims, without bias", {normal(dims), normal(dims)}, eps, {0}});
  out.push_back({&kLayerNormGrad,
                 "two dims",
                 {normal(x), normal(x), normal(dims), result_of(kLayerNorm, {1, 2}, eps, 1, matrix),
                  result_of(kLayerNorm, {1, 2}, eps, 2, matrix)},
                 {true}});
  out.push_back({&kRmsNorm, "two dims", {normal(x), normal(dims)}, eps, {0}});
  out.push_back(
      {&kRmsNormGrad,
       "two dims",
       {normal(x), normal(x), normal(dims), result_of(kRmsNorm, {1, 2}, eps, 1, matrix)}});
  out.push_back({&kRmsNormGrad,
                 "",
                 {normal(x), normal(x), normal(d), result_of(kRmsNorm, {1, 2}, eps, 1, row)}});
}

void add_softmax(std::vector<Case>& out) {
  const std::int64_t ignored = -1;
  const Shape logits = {2, 3, 5}, rows = {2, 3};
  out.push_back({&kSoftmax, "the last dim", {normal(logits)}, {std::int64_t{2}}});
  out.push_back({&kSoftmax, "an inner dim", {normal({3, 5, 4})}, {std::int64_t{1}}});
  out.push_back({&kLogSoftmax, "", {normal({3, 5, 4})}, {std::int64_t{1}}});
  out.push_back({&kCrossEntropy, "", {normal(logits), ids(rows, 0, 5)}, {ignored}, {0}});
  out.push_back({&kCrossEntropy,
                 "ignored labels, and some that name nothing",
                 {normal({12, 4}), ids({12}, -2, 6)},
                 {ignored},
                 {0}});
  const Operand logsumexp = result_of(kCrossEntropy, {0, 1}, {ignored}, 1, rows);
  out.push_back({&kCrossEntropyGrad,
                 "",
                 {normal(logits), ids(rows, -1, 5), logsumexp, normal(rows)},
                 {ignored}});
}

/// Of two heads of two queries each; row 0 of the first batch sees none of the first keys, row 1
/// none at all, row 2 none of the second keys.
void add_merges(std::vector<Case>& out) {
  const Shape y = {2, 5, 2, 2, 4}, rows = {2, 2, 2, 5};
  const auto unseen = [&](std::vector<std::int64_t> at) {
    return Operand::Make([=](const Tensors&) {
      HostTensor out(DType::F64, rows);
      for (std::int64_t i = 0; i < rows.numel(); ++i) out.set(i, static_cast<double>(i % 7) - 3);
      for (const std::int64_t i : at) out.set(i, -std::numeric_limits<double>::infinity());
      return out;
    });
  };
  out.push_back({&kMergeAttention, "", {normal(y), normal(rows), normal(y), normal(rows)}});
  out.push_back({&kMergeAttention,
                 "rows that see no key",
                 {normal(y), made(rows, unseen({0, 1})), normal(y), made(rows, unseen({1, 2}))}});
}

void add_attention(std::vector<Case>& out) {
  const Shape q = {2, 5, 2, 2, 4}, k = {2, 5, 2, 4}, longer = {2, 7, 2, 4};
  out.push_back({&kAttention,
                 "causal",
                 {normal(q), normal(k), normal(k)},
                 attention_attrs(true, false),
                 {0}});
  out.push_back({&kAttention,
                 "more keys than queries",
                 {normal(q), normal(longer), normal(longer)},
                 attention_attrs(false, false),
                 {0}});
  out.push_back({&kAttention,
                 "causal, more keys than queries",
                 {normal(q), normal(longer), normal(longer)},
                 attention_attrs(true, false),
                 {0}});
  out.push_back({&kAttention,
                 "causal, a mask of keys",
                 {normal(q), normal(k), normal(k), bits({2, 5})},
                 attention_attrs(true, true),
                 {0}});
  out.push_back({&kAttention,
                 "no key is seen",
                 {normal(q), normal(k), normal(k), exactly(0, DType::Bool, {2, 5})},
                 attention_attrs(true, true),
                 {0}});
  out.push_back({&kAttention,
                 "a mask for each query",
                 {normal(q), normal(longer), normal(longer), bits({2, 5, 7})},
                 attention_attrs(false, true),
                 {0}});
  out.push_back(
      {&kAttention,
       "one query, some of many keys",
       {normal({2, 1, 2, 1, 3}), normal({2, 9, 2, 3}), normal({2, 9, 2, 3}), bits({2, 1, 9})},
       attention_attrs(false, true),
       {0}});
  out.push_back({&kAttention,
                 "no query sees a key",
                 {normal(q), normal(k), normal(k), exactly(0, DType::Bool, {2, 5, 5})},
                 attention_attrs(false, true),
                 {0}});
  out.push_back({&kAttention,
                 "dropout",
                 {normal(q), normal(k), normal(k), model_step()},
                 attention_attrs(true, false, 0.3),
                 {0}});
  out.push_back({&kAttention,
                 "a mask and dropout",
                 {normal(q), normal(k), normal(k), bits({2, 5}), model_step()},
                 attention_attrs(false, true, 0.3),
                 {0}});
  out.push_back({&kAttention,
                 "one head",
                 {normal({3, 4, 1, 1, 2}), normal({3, 4, 1, 2}), normal({3, 4, 1, 2})},
                 attention_attrs(true, false),
                 {0}});
  out.push_back({&kAttention,
                 "causal, a window",
                 {normal(q), normal(k), normal(k)},
                 attention_attrs(true, false, 0, 2),
                 {0}});
  out.push_back({&kAttention,
                 "a window on both sides, more keys than queries",
                 {normal(q), normal(longer), normal(longer)},
                 attention_attrs(false, false, 0, 3),
                 {0}});
  out.push_back({&kAttention,
                 "a window of one key, a mask and dropout",
                 {normal(q), normal(longer), normal(longer), bits({2, 5, 7}), model_step()},
                 attention_attrs(true, true, 0.3, 1),
                 {0}});
  out.push_back({&kAttention,
                 "a window, one query of many keys",
                 {normal({2, 1, 2, 1, 3}), normal({2, 9, 2, 3}), normal({2, 9, 2, 3})},
                 attention_attrs(false, false, 0, 4),
                 {0}});
  out.push_back({&kAttention,
                 "causal, a cap",
                 {normal(q), normal(k), normal(k)},
                 attention_attrs(true, false, 0, 0, 1.5),
                 {0}});
  out.push_back({&kAttention,
                 "causal, slopes",
                 {normal(q), normal(k), normal(k), normal({2, 2})},
                 attention_attrs(true, false, 0, 0, 0, true),
                 {0},
                 {3}});
  out.push_back(
      {&kAttention,
       "slopes, a cap, a window, a mask for each query and dropout",
       {normal(q), normal(longer), normal(longer), bits({2, 5, 7}), normal({2, 2}), model_step()},
       attention_attrs(false, true, 0.3, 4, 0.7, true),
       {0},
       {4}});
  out.push_back(
      {&kAttention,
       "slopes, one query of many keys",
       {normal({2, 1, 2, 1, 3}), normal({2, 9, 2, 3}), normal({2, 9, 2, 3}), normal({2, 1})},
       attention_attrs(false, false, 0, 0, 0, true),
       {0},
       {3}});
  out.push_back({&kAttention,
                 "causal, both results",
                 {normal(q), normal(k), normal(k)},
                 attention_attrs(true, false),
                 {0, 1}});
  out.push_back({&kAttention,
                 "a cap, a window, both results",
                 {normal(q), normal(longer), normal(longer)},
                 attention_attrs(false, false, 0, 4, 0.7),
                 {0, 1}});
  out.push_back({&kAttention,
                 "logsumexp alone",
                 {normal(q), normal(longer), normal(longer)},
                 attention_attrs(false, false),
                 {1}});
  Attrs of_both = attention_attrs(false, true, 0.3, 3);
  of_both = of_both.with(of_both.size(), 0.0).with(of_both.size() + 1, true);
  out.push_back({&kAttentionGrad, "both results, a window, a mask and dropout",
                 with(attention_grad_operands(5, 7, false, 3),
                      {normal({2, 2, 2, 5}), bits({2, 7}), model_step()}),
                 of_both});
  out.push_back({&kAttentionGrad, "slopes",
                 with(attention_grad_operands(5, 5, true), {normal({2, 2})}),
                 attention_attrs(true, false, 0, 0, 0, true)});
  out.push_back(
      {&kAttentionGrad, "slopes, a cap, a mask and dropout",
       with(attention_grad_operands(5, 7, false), {bits({2, 7}), normal({2, 2}), model_step()}),
       attention_attrs(false, true, 0.3, 0, 0.7, true)});
  out.push_back({&kAttention,
                 "a cap, a window, a mask of keys and dropout",
                 {normal(q), normal(longer), normal(longer), bits({2, 7}), model_step()},
                 attention_attrs(false, true, 0.3, 4, 0.7),
                 {0}});
  out.push_back({&kAttentionGrad, "a cap", attention_grad_operands(5, 7, false, 0, 1.5),
                 attention_attrs(false, false, 0, 0, 1.5)});
  out.push_back({&kAttentionGrad, "a cap, a window, a mask and dropout",
                 with(attention_grad_operands(5, 5, true, 3, 0.7), {bits({2, 5}), model_step()}),
                 attention_attrs(true, true, 0.3, 3, 0.7)});
  out.push_back({&kAttentionGrad, "causal, a window", attention_grad_operands(5, 5, true, 2),
                 attention_attrs(true, false, 0, 2)});
  out.push_back({&kAttentionGrad, "a window on both sides, a mask and dropout",
                 with(attention_grad_operands(5, 7, false, 3), {bits({2, 7}), model_step()}),
                 attention_attrs(false, true, 0.3, 3)});
  out.push_back({&kAttentionGrad, "causal", attention_grad_operands(5, 5, true),
                 attention_attrs(true, false)});
  out.push_back({&kAttentionGrad, "more keys than queries", attention_grad_operands(3, 5, false),
                 attention_attrs(false, false)});
  out.push_back({&kAttentionGrad, "a mask of keys",
                 with(attention_grad_operands(5, 5, true), {bits({2, 5})}),
                 attention_attrs(true, true)});
  out.push_back({&kAttentionGrad, "a mask and dropout",
                 with(attention_grad_operands(5, 4, false), {bits({2, 4}), model_step()}),
                 attention_attrs(false, true, 0.3)});
  out.push_back({&kAttentionGrad, "a mask for each query and dropout",
                 with(attention_grad_operands(5, 4, true), {bits({2, 5, 4}), model_step()}),
                 attention_attrs(true, true, 0.3)});
  out.push_back({&kRope,
                 "",
                 {normal({2, 5, 3, 4}), ids({2, 5}, 0, 50)},
                 {std::vector<double>{1, 0.01}, 1.0, false}});
  out.push_back({&kRope,
                 "grouped heads, backwards",
                 {normal({2, 3, 2, 2, 6}), ids({2, 3}, 0, 50)},
                 {rotary_rates({.base = 100}, 6, 3).rates, 1.0, true}});
  out.push_back({&kRope,
                 "four of seven channels, with a factor",
                 {normal({2, 5, 3, 7}), ids({2, 5}, 0, 50)},
                 {std::vector<double>{0.7, 0.03}, 1.25, false}});
}

/// y = (a * b + 1, tanh(a)) with a row b: two results, a constant, an operand that repeats.
std::shared_ptr<const Graph> fused_body(bool broadcast) {
  Builder builder;
  const Value a = builder.batch("0", {DType::F32, {4, 5}, {}});
  Value b = builder.batch("1", {DType::F32, {5}, {}});
  if (broadcast) b = broadcast_to(b, {4, 5});
  builder.output(Output::Kind::Metric, "scaled", a * b + 1.0);
  builder.output(Output::Kind::Metric, "bent", tanh(a));
  return std::make_shared<const Graph>(builder.finish());
}

/// The end of a sublayer, residual + dropout(h + bias), and its norm.
std::shared_ptr<const Graph> row_body(const Shape& shape, const Shape& row) {
  Builder builder;
  auto in = [&, i = 0](const Shape& of) mutable {
    return builder.batch(text(i++), {DType::F32, of, {}});
  };
  const Value h = in(shape), bias = in(row), residual = in(shape), weight = in(row);
  const Value step = builder.batch("4", {DType::I64, {}, {}});
  const Value x = residual + dropout(h + bias, step, 0.4, "drop");
  const LayerNormResult norm = layer_norm(x, weight, bias);
  builder.output(Output::Kind::Metric, "x", x);
  builder.output(Output::Kind::Metric, "y", norm.y);
  builder.output(Output::Kind::Metric, "mean", norm.mean);
  builder.output(Output::Kind::Metric, "rstd", norm.rstd);
  return std::make_shared<const Graph>(builder.finish());
}

/// Its gradient: of the norm, of the residual stream, of dropout and of the bias.
std::shared_ptr<const Graph> row_grad_body(const Shape& shape, const Shape& row) {
  Builder builder;
  Shape statistic = shape;
  for (int d = shape.ndim() - row.ndim(); d < shape.ndim(); ++d) statistic[d] = 1;
  auto in = [&, i = 0](const Shape& of) mutable {
    return builder.batch(text(i++), {DType::F32, of, {}});
  };
  const Value dy = in(shape), x = in(shape), weight = in(row), mean = in(statistic),
              rstd = in(statistic), stream = in(shape);
  const Value step = builder.batch("6", {DType::I64, {}, {}});
  const std::vector<Value> grad =
      builder.add_all(kLayerNormGrad, {dy, x, weight, mean, rstd}, {true});
  const Value dropped = dropout(stream + grad[0], step, 0.4, "drop");
  std::vector<std::int64_t> lead;
  for (int d = 0; d < shape.ndim() - row.ndim(); ++d) lead.push_back(d);
  builder.output(Output::Kind::Metric, "dx", dropped);
  builder.output(Output::Kind::Metric, "dbias", sum(dropped, lead));
  builder.output(Output::Kind::Metric, "dweight", grad[1]);
  builder.output(Output::Kind::Metric, "dshift", grad[2]);
  return std::make_shared<const Graph>(builder.finish());
}

void add_fused(std::vector<Case>& out) {
  out.push_back({&kFused, "", {normal({4, 5}), normal({5})}, {fused_body(false)}});
  out.push_back(
      {&kFused, "a row is broadcast inside", {normal({4, 5}), normal({5})}, {fused_body(true)}});
  const Operand step = exactly(3, DType::I64);
  struct Rows {
    const char *name, *of_gradient;
    Shape shape, row, statistic;
  };
  for (const Rows& r :
       {Rows{"rows", "gradients of rows", {3, 4, 6}, {6}, {3, 4, 1}},
        Rows{"rows of two dims", "gradients of rows of two dims", {5, 2, 3}, {2, 3}, {5, 1, 1}}}) {
    out.push_back({&kFused,
                   r.name,
                   {normal(r.shape), normal(r.row), normal(r.shape), normal(r.row), step},
                   {row_body(r.shape, r.row)}});
    out.push_back({&kFused,
                   r.of_gradient,
                   {normal(r.shape), normal(r.shape), normal(r.row), normal(r.statistic),
                    positive(r.statistic), normal(r.shape), step},
                   {row_grad_body(r.shape, r.row)}});
  }
}

void add_updates(std::vector<Case>& out) {
  const Shape p = {5, 3};
  const std::vector<Operand> scalars = {exactly(0.1), exactly(0.7)};
  for (const bool ok : {true, false}) {
    const std::vector<Operand> adam =
        with(with({normal(p), normal(p), positive(p), normal(p)}, scalars),
             {exactly(0.3), exactly(0.2), exactly(ok, DType::Bool)});
    out.push_back({&kAdam, ok ? "AdamW" : "skipped", adam, {0.9, 0.99, 1e-8, 0.1, true}});
    if (ok) out.push_back({&kAdam, "Adam", adam, {0.9, 0.99, 1e-8, 0.1, false}});
    const std::vector<Operand> lamb = {
        normal(p),    normal(p),    positive(p),  normal(p),
        exactly(0.7), exactly(0.3), exactly(0.2), exactly(ok, DType::Bool)};
    out.push_back({&kLambDirection, ok ? "" : "skipped", lamb, {0.9, 0.99, 1e-6, 0.1}});
    const std::vector<Operand> sgd =
        with(with({normal(p), normal(p), normal(p)}, scalars), {exactly(ok, DType::Bool)});
    out.push_back({&kSgd, ok ? "" : "skipped", sgd, {0.9, 0.1, false}});
    if (ok) out.push_back({&kSgd, "nesterov", sgd, {0.9, 0.1, true}});
  }
}

}  // namespace

std::vector<Case> model_cases() {
  std::vector<Case> out;
  add_norms(out);
  add_softmax(out);
  add_attention(out);
  add_merges(out);
  add_updates(out);
  add_fused(out);
  return out;
}

}  // namespace tessera::test
