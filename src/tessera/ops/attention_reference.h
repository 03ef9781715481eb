#pragma once
/// Reference kernels of attention, for attention.cpp only.

#include "tessera/ops/reference.h"

namespace tessera {

template <typename T>
void attention_reference(RefCall& c);
template <typename T>
void attention_grad_reference(RefCall& c);

}  // namespace tessera
