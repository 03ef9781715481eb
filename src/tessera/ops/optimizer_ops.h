#pragma once
/// Optimizer updates: elementwise over a parameter, its gradient and its moments, in place.

#include "tessera/ir/builder.h"

namespace tessera {

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;  // AdamW: decay is added to the step; else (Adam) to the gradient
};
struct AdamResult {
  Value parameter, m, v;
};
/// One step, as reference formulas: g' = g * scale; m = b1 m + (1-b1) g'; v = b2 v + (1-b2) g'^2;
/// p -= lr * (m / correction1 / (sqrt(v / correction2) + eps) + weight_decay p). Where `ok` is false nothing changes.
/// Scalars (f32, [] shape): lr, scale (clipping), correction1 = 1 - b1^t, correction2 = 1 - b2^t; ok: bool.
AdamResult adam(Value p, Value m, Value v, Value g, Value lr, Value scale, Value correction1, Value correction2, Value ok,
                const AdamOptions& options);

struct SgdResult {
  Value parameter, momentum;
};
/// g' = g * scale + weight_decay p; u = momentum * u + g'; p -= lr u (nesterov: g' + momentum u). No dampening.
SgdResult sgd(Value p, Value u, Value g, Value lr, Value scale, Value ok, double momentum, double weight_decay,
              bool nesterov);

extern const OpDef kAdam, kSgd;

}  // namespace tessera
