#include "tessera/nn/transformer_stack.h"

#include <algorithm>

namespace tessera {

namespace {

/// Calls `build` in the block of each layer, in the current one.
template <typename Build>
void each_layer(Builder& builder, std::int64_t layers, std::int64_t offset,
                const TransformerConfig& config, const Build& build, Where where) {
  for (std::int64_t i = 0; i < layers; ++i) {
    Scope layer(builder, text("layers.", i), where);
    if (config.lambda_func) {
      config.lambda_func(layer, i, offset, config, layers);
    } else if (config.stages > 0) {
      even_stages(layer, i, offset, config, layers);
    }
    build();
  }
}

/// `layers` times `build`, and the last norm, in the block `name`.
template <typename Build>
Value stack(Value x, std::string_view name, std::int64_t layers, std::int64_t offset,
            const TransformerConfig& config, const Build& build, Where where) {
  require(layers >= 1, "the ", name, " at ", where.file, ":", where.line, " has ", layers,
          " layers; give it 1 or more");
  const Scope outer(x.builder(), name, where);
  each_layer(
      x.builder(), layers, offset, config, [&] { x = build(x); }, where);
  return config.last_norm ? norm(x, "norm", config.layer, where) : x;
}

}  // namespace

void even_stages(Scope& layer, std::int64_t layer_id, std::int64_t offset,
                 const TransformerConfig& config, std::int64_t) {
  require(config.stages >= 1 && config.stages <= config.layers(), "stages is ", config.stages,
          " for ", config.layers(), " layers of encoder and decoder; give 1 to ", config.layers());
  const std::int64_t per_stage = config.layers() / config.stages;
  layer.stage(
      static_cast<int>(std::min<std::int64_t>((layer_id + offset) / per_stage, config.stages - 1)));
}

Value transformer_encoder(Value x, const TransformerConfig& config, const Visible& visible,
                          const Pass& pass, Where where) {
  return stack(
      x, "encoder", config.encoder_layers, 0, config,
      [&](Value y) { return encoder_layer(y, config.layer, visible, pass, where); }, where);
}

Value transformer_decoder(Value x, const Encoded& encoded, const TransformerConfig& config,
                          const Visible& visible, const Pass& pass, Where where) {
  return stack(
      x, "decoder", config.decoder_layers, config.encoder_layers, config,
      [&](Value y) { return decoder_layer(y, encoded, config.of_decoder(), visible, pass, where); },
      where);
}

void keep_for_decoder(const Encoded& encoded, std::int64_t width, const TransformerConfig& config,
                      Where where) {
  Builder& builder = encoded.values.builder();
  const Scope outer(builder, "decoder", where);
  each_layer(
      builder, config.decoder_layers, config.encoder_layers, config,
      [&] { keep_encoded(encoded, width, config.of_decoder(), where); }, where);
}

Value transformer(Value source, Value target, const TransformerConfig& config,
                  const Visible& of_source, const Visible& of_target, const Pass& pass,
                  Where where) {
  const Value encoded = transformer_encoder(source, config, of_source, pass, where);  // [b, t, d]
  return transformer_decoder(target, {encoded, {.mask = of_source.mask}}, config, of_target, pass,
                             where);
}

}  // namespace tessera
