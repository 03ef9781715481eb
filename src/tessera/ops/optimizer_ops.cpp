#include "tessera/ops/optimizer_ops.h"

#include <algorithm>
#include <cmath>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

/// Operands [0, tensors) are of one type, those between are scalars of its dtype, the last one is
/// the flag `ok`.
void check_update(const OpCall& c, int tensors) {
  const TensorType& p = c.in(0);
  require(is_float(p.dtype), c.op().name, ": the parameter is ", p, "; it needs a floating dtype");
  for (int i = 1; i < tensors; ++i) {
    require(c.in(i) == p, c.op().name, ": the parameter is ", p, ", operand ", i, " is ", c.in(i),
            "; moments and gradient need the parameter's type");
  }
  for (int i = tensors; i < c.num_in(); ++i) {
    const TensorType wanted{i + 1 < c.num_in() ? p.dtype : DType::Bool, {}, {}};
    require(c.in(i) == wanted, c.op().name, ": operand ", i, " is ", c.in(i), "; it needs ",
            wanted);
  }
}

bool makes_copy(const OpCall& c) {
  return c.op().attrs.find(kCopyDType.name) < static_cast<int>(c.attrs().size());
}

/// Results of the parameter's type, and the copy where one is asked for.
TensorTypes updated(const OpCall& c, int results) {
  TensorTypes out;
  for (int i = 0; i < results; ++i) out.push_back(c.in(0));
  if (!makes_copy(c)) return out;
  const DType copy = c.dtype(kCopyDType.name);
  require(is_16_bit(copy) || copy == DType::F32, c.op().name, ": the copy is asked for in ", copy,
          "; it can be bf16, f16 or f32");
  out.push_back({copy, c.in(0).shape, {}});
  return out;
}

Factors updated_factors(const OpCall& c, std::string_view ins, std::string_view outs) {
  return Factors::parse(text(ins, " -> ", outs, makes_copy(c) ? ", ..." : ""), c.ndims());
}

/// Result 0 once more; a result is rounded to its dtype when it is stored.
template <typename T>
void rounded_reference(RefCall& c, int result) {
  if (makes_copy(c.call)) std::copy_n(c.out<T>(0), c.in_shape(0).numel(), c.out<T>(result));
}

/// A rate of decay of a moment, and what is left of 1: in f64, as 1 - 0.9999f is off by 1.7e-4.
template <typename T>
struct Beta {
  explicit Beta(double of) : beta(static_cast<T>(of)), rest(static_cast<T>(1 - of)) {}
  T next(T moment, T value) const { return beta * moment + rest * value; }
  T beta, rest;
};

template <typename T>
void adam_reference(RefCall& c) {
  const Beta<T> first(c.call.number("beta1")), second(c.call.number("beta2"));
  const T eps = static_cast<T>(c.call.number("eps")),
          decay = static_cast<T>(c.call.number("weight_decay"));
  const bool decoupled = c.call.flag("decoupled"), ok = *c.in<bool>(8);
  const T lr = *c.in<T>(4), scale = *c.in<T>(5), correction1 = *c.in<T>(6),
          correction2 = *c.in<T>(7);
  for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i) {
    const T p = c.in<T>(0)[i], m = c.in<T>(1)[i], v = c.in<T>(2)[i];
    const T g = c.in<T>(3)[i] * scale + (decoupled ? T(0) : decay * p);
    const T m1 = first.next(m, g), v1 = second.next(v, g * g);
    const T step =
        m1 / correction1 / (std::sqrt(v1 / correction2) + eps) + (decoupled ? decay * p : T(0));
    c.out<T>(0)[i] = ok ? p - lr * step : p;
    c.out<T>(1)[i] = ok ? m1 : m;
    c.out<T>(2)[i] = ok ? v1 : v;
  }
  rounded_reference<T>(c, 3);
}

template <typename T>
void lamb_direction_reference(RefCall& c) {
  const Beta<T> first(c.call.number("beta1")), second(c.call.number("beta2"));
  const T eps = static_cast<T>(c.call.number("eps")),
          decay = static_cast<T>(c.call.number("weight_decay"));
  const bool ok = *c.in<bool>(7);
  const T scale = *c.in<T>(4), correction1 = *c.in<T>(5), correction2 = *c.in<T>(6);
  for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i) {
    const T p = c.in<T>(0)[i], m = c.in<T>(1)[i], v = c.in<T>(2)[i], g = c.in<T>(3)[i] * scale;
    const T m1 = first.next(m, g), v1 = second.next(v, g * g);
    const T u = m1 / correction1 / (std::sqrt(v1 / correction2) + eps) + decay * p;
    c.out<T>(0)[i] = ok ? u : T(0);
    c.out<T>(1)[i] = ok ? m1 : m;
    c.out<T>(2)[i] = ok ? v1 : v;
  }
}

template <typename T>
void sgd_reference(RefCall& c) {
  const T momentum = static_cast<T>(c.call.number("momentum")),
          decay = static_cast<T>(c.call.number("weight_decay"));
  const bool nesterov = c.call.flag("nesterov"), ok = *c.in<bool>(5);
  const T lr = *c.in<T>(3), scale = *c.in<T>(4);
  for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i) {
    const T p = c.in<T>(0)[i], u = c.in<T>(1)[i];
    const T g = c.in<T>(2)[i] * scale + decay * p, u1 = momentum * u + g;
    c.out<T>(0)[i] = ok ? p - lr * (nesterov ? g + momentum * u1 : u1) : p;
    c.out<T>(1)[i] = ok ? u1 : u;
  }
  rounded_reference<T>(c, 2);
}

// ---- the same as ops

/// Moments as they are left, of which the parameter's step is made: were it made of the new ones, a
/// compiler would compute those twice, and copy the old ones, which the first of them overwrites.
struct Moments {
  Value m, v;
};

Moments moments_left(const ExpandCall& e, Value g, Value ok) {
  const double beta1 = e.call.number("beta1"), beta2 = e.call.number("beta2");
  return {select(ok, e.in(1) * beta1 + g * (1 - beta1), e.in(1)),
          select(ok, e.in(2) * beta2 + g * g * (1 - beta2), e.in(2))};
}

Value step_by(const ExpandCall& e, const Moments& n, Value correction1, Value correction2) {
  return n.m / correction1 / (sqrt(n.v / correction2) + e.call.number("eps"));
}

/// And the copy of the first where it is asked for.
void set_results(ExpandCall& e, const std::vector<Value>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) e.out(static_cast<int>(i)) = results[i];
  const int copy = static_cast<int>(results.size());
  if (copy < e.call.num_out()) e.out(copy) = cast(e.out(0), e.call.out(0).dtype);
}

void expand_adam(ExpandCall& e) {
  const Value p = e.in(0), scaled = e.in(3) * e.in(5), ok = e.in(8);
  const double decay = e.call.number("weight_decay");
  const bool decoupled = e.call.flag("decoupled");
  const Moments n = moments_left(e, decoupled ? scaled : scaled + p * decay, ok);
  const Value bare = step_by(e, n, e.in(6), e.in(7)), step = decoupled ? bare + p * decay : bare;
  set_results(e, {select(ok, p - e.in(4) * step, p), n.m, n.v});
}

void expand_lamb_direction(ExpandCall& e) {
  const Value ok = e.in(7);
  const Moments n = moments_left(e, e.in(3) * e.in(4), ok);
  const Value u = step_by(e, n, e.in(5), e.in(6)) + e.in(0) * e.call.number("weight_decay");
  set_results(e, {select(ok, u, u.builder().constant(0, u.dtype())), n.m, n.v});
}

void expand_sgd(ExpandCall& e) {
  const double momentum = e.call.number("momentum");
  const Value p = e.in(0), ok = e.in(5);
  const Value g = e.in(2) * e.in(4) + p * e.call.number("weight_decay");
  const Value u = select(ok, e.in(1) * momentum + g, e.in(1));
  const Value step = e.call.flag("nesterov") ? g + u * momentum : u;
  set_results(e, {select(ok, p - e.in(3) * step, p), u});
}

}  // namespace

constinit const OpDef kAdam = {
    .name = "adam",
    .doc =
        "One step of Adam or AdamW: (p, m, v, g, lr, scale, correction1, correction2, ok) -> (p, "
        "m, v), and p rounded to 16 bits where `copy` says so.",
    .attrs = {{"beta1", AttrKind::Float},
              {"beta2", AttrKind::Float},
              {"eps", AttrKind::Float},
              {"weight_decay", AttrKind::Float},
              {"decoupled", AttrKind::Bool},  // true: AdamW
              kCopyDType},
    .infer = [](const OpCall& c) -> TensorTypes {
      check_update(c, 4);
      return updated(c, 3);
    },
    .factors = [](const OpCall& c) -> Factors {
      return updated_factors(c, "..., ..., ..., ..., , , , ,", "..., ..., ...");
    },
    .expand = expand_adam,
    .flops = [](const OpCall& c) -> double { return 15.0 * static_cast<double>(c.in(0).numel()); },
    .reference = {adam_reference<float>, adam_reference<double>},
    .in_place = {{{0, 0}, {1, 1}, {2, 2}}},
};

constinit const OpDef kLambDirection = {
    .name = "lamb_direction",
    .doc =
        "The direction of a step of LAMB: (p, m, v, g, scale, correction1, correction2, ok) -> (u, "
        "m, v).",
    .attrs = {{"beta1", AttrKind::Float},
              {"beta2", AttrKind::Float},
              {"eps", AttrKind::Float},
              {"weight_decay", AttrKind::Float}},
    .infer = [](const OpCall& c) -> TensorTypes {
      check_update(c, 4);
      return {c.in(0), c.in(0), c.in(0)};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("..., ..., ..., ..., , , , -> ..., ..., ...", c.ndims());
    },
    .expand = expand_lamb_direction,
    .flops = [](const OpCall& c) -> double { return 14.0 * static_cast<double>(c.in(0).numel()); },
    .reference = {lamb_direction_reference<float>, lamb_direction_reference<double>},
    .in_place = {{{0, 3}, {1, 1}, {2, 2}}},
};

constinit const OpDef kSgd = {
    .name = "sgd",
    .doc =
        "One step of SGD with momentum: (p, u, g, lr, scale, ok) -> (p, u), and p rounded to 16 "
        "bits where `copy` says so.",
    .attrs = {{"momentum", AttrKind::Float},
              {"weight_decay", AttrKind::Float},
              {"nesterov", AttrKind::Bool},
              kCopyDType},
    .infer = [](const OpCall& c) -> TensorTypes {
      check_update(c, 3);
      return updated(c, 2);
    },
    .factors = [](const OpCall& c) -> Factors {
      return updated_factors(c, "..., ..., ..., , ,", "..., ...");
    },
    .expand = expand_sgd,
    .flops = [](const OpCall& c) -> double { return 7.0 * static_cast<double>(c.in(0).numel()); },
    .reference = {sgd_reference<float>, sgd_reference<double>},
    .in_place = {{{0, 0}, {1, 1}}},
};

AdamResult adam(Value p, Value m, Value v, Value g, Value lr, Value scale, Value correction1,
                Value correction2, Value ok, const AdamOptions& options) {
  const std::vector<Value> out = p.builder().add_all(
      kAdam, {p, m, v, g, lr, scale, correction1, correction2, ok},
      {options.beta1, options.beta2, options.eps, options.weight_decay, options.decoupled});
  return {out[0], out[1], out[2]};
}

LambResult lamb_direction(Value p, Value m, Value v, Value g, Value scale, Value correction1,
                          Value correction2, Value ok, const AdamOptions& options) {
  const std::vector<Value> out =
      p.builder().add_all(kLambDirection, {p, m, v, g, scale, correction1, correction2, ok},
                          {options.beta1, options.beta2, options.eps, options.weight_decay});
  return {out[0], out[1], out[2]};
}

SgdResult sgd(Value p, Value u, Value g, Value lr, Value scale, Value ok, double momentum,
              double weight_decay, bool nesterov) {
  const std::vector<Value> out =
      p.builder().add_all(kSgd, {p, u, g, lr, scale, ok}, {momentum, weight_decay, nesterov});
  return {out[0], out[1]};
}

}  // namespace tessera
