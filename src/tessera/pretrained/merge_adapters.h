#pragma once
/// A model whose adapters are a part of its weights.

#include "tessera/pretrained/save_pretrained.h"

namespace tessera {

ModelConfig without_adapters(ModelConfig model);

/// The lengths of the rows of W that a parameter lora_magnitude is of, in their order. `from` reads
/// W.
std::vector<double> row_lengths(const ModelConfig& model, const ParameterReader& from,
                                std::string_view magnitude);

/// Reads lora_magnitude as PEFT has it, the lengths that rows come to: what is trained here is by
/// how much they are longer than those of W.
ParameterReader with_lengths(const ModelConfig& model, const ParameterReader& from);

/// Reads the parameters of `model` without adapters, each weight W with what its adapters add: W +
/// scale B A, with DoRA in the trained lengths. `from` reads those of `model`, which has adapters.
/// Numeric: products of A and B are summed in f64, and the sum with W is rounded once.
ParameterReader merged(const ModelConfig& model, const ParameterReader& from);

}  // namespace tessera
