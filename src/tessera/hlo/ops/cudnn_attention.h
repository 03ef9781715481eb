#pragma once
/// Attention by cuDNN's fused kernels, which XLA for CUDA calls: no scores in memory, and many times
/// the speed of the ops that they replace.

#include "tessera/hlo/op_call.h"

namespace tessera::hlo {

/// True where the kernels compute what the op says, and the plugin has them: 16-bit floats, heads of
/// 8, 16, ... 128, all keys seen or the causal ones of as many queries without a window, no cap, no slopes, no dropout
/// (theirs would have other masks). `first` is the operand q.
bool cudnn_takes(const Writing& w, int first);

void write_cudnn_attention(Writing& w);
void write_cudnn_attention_grad(Writing& w);

}  // namespace tessera::hlo
