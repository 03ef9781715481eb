#pragma once
/// What the tile functions of optimizer updates are made with; operands and results are those of
/// the ops (ops/optimizer_ops.h).

namespace tessera::cpu {

struct AdamRule {
  float beta1, beta2, eps, decay;
  bool decoupled;
};

struct LambRule {
  float beta1, beta2, eps, decay;
};

struct SgdRule {
  float momentum, decay;
  bool nesterov;
};

}  // namespace tessera::cpu
