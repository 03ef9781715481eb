#pragma once
/// Losses are f32 also where a program computes in 16 bits.

#include "tessera/ops/elementwise.h"

namespace tessera {

/// What is computed of it then is f32, too, and labels that are numbers keep their digits. A cast to
/// its own dtype, which passes/compute_in.h makes one from 16 bits.
inline Value in_f32(Value x) { return x.builder().add(kCast, {x}, {DType::F32}); }

}  // namespace tessera
