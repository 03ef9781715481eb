#pragma once
/// A model whose adapters are a part of its weights.

#include "tessera/pretrained/save_pretrained.h"

namespace tessera {

ModelConfig without_adapters(ModelConfig model);

/// Reads the parameters of `model` without adapters, each weight W with what its adapters add: W +
/// scale B A. `from` reads those of `model`, which has adapters.
/// Numeric: products of A and B are summed in f64, and the sum with W is rounded once.
ParameterReader merged(const ModelConfig& model, const ParameterReader& from);

}  // namespace tessera
