#pragma once
/// Optimizer updates: elementwise over a parameter, its gradient and its moments, in place. What
/// needs norms of whole tensors is composed of these and of sums in nn/optimizer.

#include "tessera/ir/builder.h"

namespace tessera {

/// The attribute of updates that make a copy of the parameter too: the dtype of one more result,
/// which is result 0 rounded to it: 16 bits, or what these are computed in. Without the attribute
/// there is no such result.
inline constexpr AttrDef kCopyDType = {.name = "copy", .kind = AttrKind::DType, .optional = true};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;  // AdamW: decay is added to the step; else (Adam) to the gradient
};
struct AdamResult {
  Value parameter, m, v;
};
/// One step of AdamW (decoupled), or of Adam:
///
///   g' = g * scale            (Adam: + weight_decay * p)
///   m  = beta1 * m + (1 - beta1) * g'
///   v  = beta2 * v + (1 - beta2) * g'^2
///   p -= lr * (m / correction1 / (sqrt(v / correction2) + eps) + weight_decay * p)
///                             (Adam: without the last term)
///
/// Where `ok` is false nothing changes, whatever g is.
/// Shapes: p, m, v, g of one type; scalars of its dtype: lr, scale (of clipping),
///         correction1 = 1 - beta1^t, correction2 = 1 - beta2^t; ok is a bool scalar.
/// Source: Loshchilov and Hutter 2019, arXiv 1711.05101; Kingma and Ba 2015, arXiv 1412.6980.
AdamResult adam(Value p, Value m, Value v, Value g, Value lr, Value scale, Value correction1,
                Value correction2, Value ok, const AdamOptions& options);

struct LambResult {
  Value direction, m, v;
};
/// The direction in which LAMB moves, before it is scaled to the parameter's norm:
///
///   g' = g * scale
///   m  = beta1 * m + (1 - beta1) * g'
///   v  = beta2 * v + (1 - beta2) * g'^2
///   u  = m / correction1 / (sqrt(v / correction2) + eps) + weight_decay * p
///
/// Where `ok` is false u is 0 and the moments stay, whatever g is. u may be in g. Shapes as adam;
/// `decoupled` has no meaning here.
/// Source: You et al. 2020, arXiv 1904.00962, algorithm 2.
LambResult lamb_direction(Value p, Value m, Value v, Value g, Value scale, Value correction1,
                          Value correction2, Value ok, const AdamOptions& options);

struct SgdResult {
  Value parameter, momentum;
};
/// One step of SGD with momentum, without dampening:
///
///   g' = g * scale + weight_decay * p
///   u  = momentum * u + g'
///   p -= lr * u               (nesterov: lr * (g' + momentum * u))
///
/// Where `ok` is false nothing changes. Shapes as adam.
SgdResult sgd(Value p, Value u, Value g, Value lr, Value scale, Value ok, double momentum,
              double weight_decay, bool nesterov);

extern const OpDef kAdam, kLambDirection, kSgd;

}  // namespace tessera
