#include "tessera/device/cpu/strides.h"

#include "tessera/device/cpu/vector.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/matmul.h"

namespace tessera::cpu {

bool accepts_strides(const OpDef& op, int operand) {
  if (&op == &kMatmul) return operand < 2;
  if (&op == &kAttention) return operand <= 2;                      // q, k, v
  if (&op == &kAttentionGrad) return operand >= 1 && operand <= 3;  // q, k, v after dy
  return vector_accepts_strides(op, operand);
}

}  // namespace tessera::cpu
