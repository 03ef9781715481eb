#include "tessera/ops/attention.h"

#include <cmath>

#include "tessera/ops/attention_reference.h"
#include "tessera/ops/attention_sight.h"
#include "tessera/ops/elementwise.h"

namespace tessera {

namespace {

/// Types shared by both ops: q, k, v at `first`; mask, slopes and step at the end. Returns the type
/// of logsumexp.
TensorType check_operands(const OpCall& c, int first, int extras) {
  const TensorType &q = c.in(first), &k = c.in(first + 1), &v = c.in(first + 2);
  require(q.ndim() == 5 && k.ndim() == 4 && k == v && is_float(q.dtype) && q.dtype == k.dtype,
          c.op().name, ": q is ", q, ", k is ", k, ", v is ", v,
          "; they need q [b, s, g, r, e] and k, v [b, t, g, e] of one floating dtype");
  const std::int64_t b = q.shape[0], s = q.shape[1], g = q.shape[2], r = q.shape[3], e = q.shape[4];
  require(k.shape[0] == b && k.shape[2] == g && k.shape[3] == e, c.op().name, ": q is ", q,
          ", k and v are ", k, "; batch, key-value heads and head_dim must agree");
  const bool mask = c.flag("mask"), slopes = c.flag_or("slopes", false),
             step = c.number("dropout") > 0;
  require(c.num_in() == extras + mask + slopes + step, c.op().name, ": ", c.num_in(),
          " operands; a mask, slopes and a step (for ",
          "dropout) are operands where they are used");
  if (mask) {
    const TensorType of_keys{DType::Bool, {b, k.shape[1]}, {}},
        of_queries{DType::Bool, {b, s, k.shape[1]}, {}};
    require(c.in(extras) == of_keys || c.in(extras) == of_queries, c.op().name, ": q is ", q,
            ", k is ", k, ", the mask is ", c.in(extras), "; it needs ", of_keys,
            " (keys that all queries may see) or ", of_queries, " (that each may see)");
  }
  const auto require_extra = [&](const char* name, int at, const TensorType& wanted) {
    require(c.in(at) == wanted, c.op().name, ": ", name, " is ", c.in(at), "; it needs ", wanted);
  };
  if (slopes) require_extra("slopes", extras + mask, {computed_in(q.dtype), {g, r}, {}});
  if (step) require_extra("step", extras + mask + slopes, {DType::I64, {}, {}});
  const double dropout = c.number("dropout");
  require(dropout >= 0 && dropout < 1, c.op().name, ": dropout is ", dropout,
          "; it needs to be in [0, 1)");
  check(c.number("scale") != 0, c.op().name, ": scale is not resolved");
  const std::int64_t window = c.integer_or("window", 0);
  require(window >= 0, c.op().name, ": window is ", window,
          "; it needs to be a number of keys, or 0 for all");
  const double cap = c.number_or("cap", 0);
  require(cap >= 0 && std::isfinite(cap), c.op().name, ": cap is ", cap,
          "; scores end there, so it needs to be above 0, or 0 for none");
  return {computed_in(q.dtype), {b, g, r, s}, {}};
}

/// The rule's operands from `first` on: mask, slopes and step.
std::string extra_operands(const OpCall& c, int first) {
  const char* const mask = !c.flag("mask") ? "" : c.in(first).ndim() == 3 ? ", b s t" : ", b t";
  return text(mask, c.flag_or("slopes", false) ? ", g r" : "", c.number("dropout") > 0 ? "," : "");
}

/// Pairs of a query and a key that are seen, times head_dim: the work of one of its matrix
/// products, in multiply-adds.
double score_products(const OpCall& c, const TensorType& q, const TensorType& k) {
  const Shape& size = q.shape;
  const double given = c.number_or("pairs", 0);
  return static_cast<double>(size[0] * size[2] * size[3] * size[4]) *
         (given > 0 ? given : sight_of(c).pairs(size[1], k.shape[1]));
}

/// Of queries and keys of one head; that of scores and values has the same work.
ProductSize score_product(const TensorType& q, const TensorType& k) {
  return {static_cast<double>(q.shape[1]), static_cast<double>(k.shape[1]),
          static_cast<double>(q.shape[4]), true};
}

void gradient_of(GradCall& g) {
  const OpCall& c = g.call;
  const int slopes = 3 + c.flag("mask");
  require(!c.flag_or("slopes", false) || !g.wants(slopes),
          "attention: slopes get no gradient, but a parameter is in them; compute it with matmul,",
          " softmax and sums");
  const Value y = g.out(0);
  std::vector<Value> ins = {
      g.has_dout(0) ? g.dout(0) : y * 0.0, g.in(0), g.in(1), g.in(2), y, g.out(1)};
  // A statistic, in f32 where programs compute in 16 bits.
  if (g.has_dout(1)) ins.push_back(y.builder().add(kCast, {g.dout(1)}, {g.out(1).dtype()}));
  for (int i = 3; i < g.num_in(); ++i) ins.push_back(g.in(i));
  Attrs attrs = c.attrs();
  if (g.has_dout(1)) {
    const std::size_t pairs = attrs.size();
    attrs = attrs.with(pairs, 0.0).with(pairs + 1, true);
  }
  const std::vector<Value> d = ins[0].builder().add_all(kAttentionGrad, ins, attrs);
  for (int i = 0; i < 3; ++i) g.din(i) = d[static_cast<std::size_t>(i)];
}

constexpr AttrDefs kAttrs = {
    {"causal", AttrKind::Bool},
    {"scale", AttrKind::Float},    // never 0
    {"dropout", AttrKind::Float},  // above 0: the last operand is the step
    {"mask", AttrKind::Bool},      // true: there is an operand that says which keys are seen
    {"key", AttrKind::Text},       // of dropout
    {.name = "window", .kind = AttrKind::Int, .optional = true},
    {.name = "cap", .kind = AttrKind::Float, .optional = true},
    {.name = "slopes", .kind = AttrKind::Bool, .optional = true},  // true: they are an operand
    // Of a query and a key that it sees, where there are other keys than those of these queries;
    // the mean of all ranks.
    {.name = "pairs", .kind = AttrKind::Float, .optional = true},
    // Of the gradient: the cotangent of logsumexp is an operand, behind logsumexp.
    {.name = "of_logsumexp", .kind = AttrKind::Bool, .optional = true}};

/// Operands of the gradient before mask, slopes and step.
int extras_of_gradient(const OpCall& c) { return 6 + c.flag_or("of_logsumexp", false); }

}  // namespace

constinit const OpDef kAttention = {
    .name = "attention",
    .doc =
        "softmax(q k^T * scale, capped, sloped, masked) v, with logsumexp of the scores; never "
        "holds the "
        "scores "
        "whole.",
    .attrs = kAttrs,
    .infer = [](const OpCall& c) -> TensorTypes {
      const TensorType logsumexp = check_operands(c, 0, 3);
      return {c.in(0), logsumexp};
    },
    // Queries may be sharded: their offset says where the causal mask stands.
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse(text("b s g r e, b t g e, b t g e", extra_operands(c, 3),
                                 " -> b s g r e, b g r s | t:whole e:whole"),
                            c.ndims());
    },
    .grad = gradient_of,
    .flops = [](const OpCall& c) -> double { return 4 * score_products(c, c.in(0), c.in(1)); },
    .product = [](const OpCall& c) -> ProductSize { return score_product(c.in(0), c.in(1)); },
    .reference = {attention_reference<float>, attention_reference<double>},
    .traits = {.by_place = true},
    .arithmetic = Arithmetic::Narrow,
    .statistics = 1u << 3 | 1u << 4,  // slopes, before or behind a mask
};

constinit const OpDef kAttentionGrad = {
    .name = "attention_grad",
    .doc =
        "Gradient of attention: (dy, q, k, v, y, logsumexp[, dlogsumexp][, mask][, slopes][, "
        "step]) -> (dq, dk, dv).",
    .attrs = kAttrs,
    .infer = [](const OpCall& c) -> TensorTypes {
      const int extras = extras_of_gradient(c);
      const TensorType logsumexp = check_operands(c, 1, extras);
      require(c.in(0) == c.in(1) && c.in(4) == c.in(1) && c.in(5) == logsumexp &&
                  c.in(extras - 1) == logsumexp,
              "attention_grad: dy is ", c.in(0), ", q is ", c.in(1), ", y is ", c.in(4),
              ", logsumexp is ", c.in(5), "; give it the results of attention");
      return {c.in(1), c.in(2), c.in(3)};
    },
    // Queries and heads that share a key add up in dk and dv: partial sums where they are sharded.
    .factors = [](const OpCall& c) -> Factors {
      const int extras = extras_of_gradient(c);
      return Factors::parse(text("b s g r e, b s g r e, b t g e, b t g e, b s g r e, b g r s",
                                 extras > 6 ? ", b g r s" : "", extra_operands(c, extras),
                                 " -> b s g r e, b t g e, b t g e | t:whole e:whole"),
                            c.ndims());
    },
    .flops = [](const OpCall& c) -> double {
      return 10 * score_products(c, c.in(1), c.in(2));
    },  // with the scores again
    .product = [](const OpCall& c) -> ProductSize { return score_product(c.in(1), c.in(2)); },
    .reference = {attention_grad_reference<float>, attention_grad_reference<double>},
    .traits = {.by_place = true},
    .arithmetic = Arithmetic::Narrow,
    .statistics = 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8,  // and slopes, wherever they are
};

AttentionResult attention(Value q, Value k, Value v, Value mask, Value step,
                          const AttentionOptions& options, Where where) {
  Builder& builder = q.builder();
  require(options.dropout == 0 || step.valid(), "attention: dropout is ", options.dropout,
          "; give the step too, random numbers are drawn for it");
  std::vector<Value> ins = {q, k, v};
  if (mask.valid()) ins.push_back(mask);
  if (options.slopes.valid()) ins.push_back(options.slopes);
  std::string key;
  if (options.dropout > 0) {
    ins.push_back(step);
    key = builder.random_path(options.name);
  }
  const double head_dim = q.ndim() > 0 ? static_cast<double>(q.shape().back()) : 1;
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(head_dim);
  const std::vector<Value> out =
      builder.add_all(kAttention, ins,
                      {options.causal, scale, options.dropout, mask.valid(), key, options.window,
                       options.cap, options.slopes.valid()},
                      where);
  return {out[0], out[1]};
}

}  // namespace tessera
