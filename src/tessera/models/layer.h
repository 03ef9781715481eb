#pragma once
/// What a model's configuration says of its layers.

#include <span>
#include <string_view>

#include "tessera/models/config.h"
#include "tessera/nn/transformer.h"

namespace tessera {

/// First values of all weights but those of `residual_init`.
WeightInit init_of(const ModelConfig& config);

/// The family's layer with the sizes, rates and first values of `config`.
TransformerLayer layer_of(const ModelConfig& config);
/// Says so where ModelConfig::activation is none of those that the family knows.
void find_activation_problems(const ModelConfig& config, std::span<const std::string_view> known,
                              FieldProblems& problems);
/// Says so where scores [heads, tokens, tokens] of a sample, which some attention holds, are too
/// many.
void find_held_score_problems(const ModelConfig& config, FieldProblems& problems);
/// Whether it has experts; whether its layer `i` has.
bool has_experts(const ModelConfig& config);
bool has_experts(const ModelConfig& config, std::int64_t i);
/// Whether layer `i` of a stack has a window, be it as wide as the samples.
bool has_window(const ModelConfig& config, std::int64_t i);
/// The same layer as number `i` of a stack, some of which have windows, or experts. A window as wide
/// as the samples is none.
TransformerLayer layer_at(TransformerLayer layer, const ModelConfig& config, std::int64_t i);

}  // namespace tessera
