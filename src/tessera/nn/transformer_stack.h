#pragma once
/// Stacks of Transformer layers: an encoder, a decoder that reads its result, and the two together.
/// Each stack ends in a norm, as those of torch.nn.Transformer do, whether its layers norm before
/// or after each part, unless it is told to have none.

#include <functional>
#include <optional>

#include "tessera/nn/transformer.h"

namespace tessera {

struct TransformerConfig;

/// Called for each layer before it is built, with its scope: `layer.stage(k)` puts it on chunk k of
/// a pipeline, `layer.recompute()` has backward compute it again. `layer_id` counts from 0 in each
/// stack of `layers` layers, and `offset` is what stands before that stack: 0 in the encoder, the
/// number of encoder layers in the decoder. Source: MindSpore's `lambda_func`.
using LayerFunction = std::function<void(Scope& layer, std::int64_t layer_id, std::int64_t offset,
                                         const TransformerConfig& config, std::int64_t layers)>;

struct TransformerConfig {
  TransformerLayer layer;                                        // of both stacks
  std::optional<TransformerLayer> decoder_layer = std::nullopt;  // of the decoder's; none: layer
  std::int64_t encoder_layers = 6, decoder_layers = 6;
  bool last_norm = true;  // at the end of each stack
  /// Above 0: chunks of a pipeline over which even_stages divides the layers, where there is no
  /// lambda_func. 0: the compiler cuts by cost.
  int stages = 0;
  LayerFunction lambda_func = nullptr;

  const TransformerLayer& of_decoder() const { return decoder_layer ? *decoder_layer : layer; }
  std::int64_t layers() const { return encoder_layers + decoder_layers; }
};

/// Puts a layer on stage min((layer_id + offset) / n, config.stages - 1), where n is the number of
/// layers per stage, all layers / config.stages, but at least 1. Errors: fewer layers than stages.
void even_stages(Scope& layer, std::int64_t layer_id, std::int64_t offset,
                 const TransformerConfig& config, std::int64_t layers);

/// config.encoder_layers layers and a last norm: x [b, s, d] -> [b, s, d]. Blocks:
/// encoder.layers.N, encoder.norm.
Value transformer_encoder(Value x, const TransformerConfig& config, const Visible& visible,
                          const Pass& pass, Where where = Where::here());

/// config.decoder_layers layers that read the encoder's result, and a last norm: x [b, t, d] -> [b,
/// t, d]. What a position sees of its own sequence is `visible`, causal for a decoder that is to
/// write one token after the other. Blocks: decoder.layers.N, decoder.norm.
Value transformer_decoder(Value x, const Encoded& encoded, const TransformerConfig& config,
                          const Visible& visible, const Pass& pass, Where where = Where::here());

/// Writes the caches from which a decoder for `width` reads the encoder's result (keep_encoded), in
/// the blocks of its layers.
void keep_for_decoder(const Encoded& encoded, std::int64_t width, const TransformerConfig& config,
                      Where where = Where::here());

/// The decoder's result for target [b, t, d], which reads what the encoder makes of source
/// [b, s, d]. The decoder sees the source positions that the encoder saw.
Value transformer(Value source, Value target, const TransformerConfig& config,
                  const Visible& of_source, const Visible& of_target, const Pass& pass,
                  Where where = Where::here());

}  // namespace tessera
