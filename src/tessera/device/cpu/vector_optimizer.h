#pragma once
/// What the inner functions of the optimizer updates are handed. `rest` is 1 - beta, computed in
/// f64: in f32 that of 0.9999 would be off by 1.7e-4.

#include <cstdint>

namespace tessera::cpu {

struct AdamSpan {
  const float *p, *m, *v, *g;
  float *p_out, *m_out, *v_out;
  void* copy_out;  // 16-bit floats
  float lr, scale, correction1, correction2;
  float beta1, rest1, beta2, rest2, eps, decay;
  bool decoupled;
};

struct LambSpan {
  const float *p, *m, *v, *g;
  float *u_out, *m_out, *v_out;
  float scale, correction1, correction2;
  float beta1, rest1, beta2, rest2, eps, decay;
};

struct SgdSpan {
  const float *p, *u, *g;
  float *p_out, *u_out;
  void* copy_out;  // 16-bit floats
  float lr, scale, momentum, decay;
  bool nesterov;
};

// Of elements begin ... end - 1.
using AdamFunction = void (*)(const AdamSpan&, std::int64_t begin, std::int64_t end);
using SgdFunction = void (*)(const SgdSpan&, std::int64_t begin, std::int64_t end);

}  // namespace tessera::cpu
