#include "tessera/models/encoder.h"

#include <algorithm>
#include <cmath>

#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

TransformerLayer encoder_layer_of(const ModelConfig& c, const MaskedModel& model) {
  TransformerLayer out = layer_of(c);
  if (!reads_field(c, "activation")) out.feed_forward = model.feed_forward;
  out.post_norm = !model.pre_norm;
  // Three products are added.
  if (model.distances)
    out.attention_scale = 1 / std::sqrt(3 * static_cast<double>(c.width / c.heads));
  if (model.pre_norm) out.residual_init = residual_init(out.init, 2 * c.layers);
  return out;
}

std::int64_t table_width(const ModelConfig& c, const MaskedModel& model) {
  return model.narrow == NarrowTables::Never ? c.width : c.embedded();
}

namespace {

bool has_projection(const ModelConfig& c, const MaskedModel& model) {
  return model.narrow == NarrowTables::Always || table_width(c, model) != c.width;
}

/// Tokens, types and positions, added up.
EmbeddingResult encoder_embedding(const ModelConfig& c, const MaskedModel& model,
                                  const TaskValues& in) {
  const WeightInit init = init_of(c);
  const Value ids = in.at("ids");
  const std::int64_t width = table_width(c, model);
  EmbeddingResult out = embedding(ids, "token", c.vocabulary, width, init);
  if (in.contains("types")) {
    out.rows = out.rows + embedding(in.at("types"), "type", model.types, width, init).rows;
  } else if (model.types > 0) {
    const Scope scope(ids.builder(), "type");
    const Shape table{model.types, width};
    const Value weight =
        ids.builder().state("weight", {DType::F32, table, {}}, Role::Parameter, init.of(table));
    out.rows = out.rows + (model.types == 1 ? weight : slice(weight, 0, 0, 1));
  }
  if (model.positions)
    out.rows = learned_positions(out.rows, "position", c.most_positions(), init, {}, {},
                                 model.unread_positions);
  return out;
}

}  // namespace

void declare_projection(const ModelConfig& c, const MaskedModel& model, Builder& builder,
                        const EncoderBlocks& blocks) {
  if (!has_projection(c, model)) return;
  const Scope embed(builder, blocks.embed), project(builder, blocks.project);
  const Shape weight{c.width, table_width(c, model)}, bias{c.width};
  builder.state("weight", {DType::F32, weight, {}}, Role::Parameter, init_of(c).of(weight));
  builder.state("bias", {DType::F32, bias, {}}, Role::Parameter, zeros_init().of(bias));
}

EncodedTokens encode_tokens(const ModelConfig& c, const MaskedModel& model, const TaskValues& in,
                            const Pass& pass, const EncoderBlocks& blocks) {
  const TransformerLayer layer = encoder_layer_of(c, model);
  const LinearOptions plain{true, init_of(c)};
  const Value seen = in.at("mask");
  Builder& builder = seen.builder();
  Value x, token;
  Value scores;  // of the layer before
  Visible visible{.mask = not_equal(seen, builder.constant(0, seen.dtype()))};
  if (c.residual_attention && reads_field(c, "residual-attention")) visible.residual = &scores;
  {
    Scope scope(builder, blocks.embed);
    if (!blocks.owner.empty()) scope.share_states(blocks.owner);
    const EmbeddingResult all = encoder_embedding(c, model, in);
    token = all.table;
    x = model.bare_tables ? all.rows : norm(all.rows, "norm", layer);
    x = dropout_layer(x, c.dropout, pass.step, "dropout");
    if (model.blind_padding) {
      const Shape& shape = x.shape();
      x = x * cast(reshape(visible.mask, {shape[0], shape[1], 1}), x.dtype());
      visible.mask = logical_and(reshape(visible.mask, {shape[0], shape[1], 1}),
                                 reshape(visible.mask, {shape[0], 1, shape[1]}));
    }
    if (has_projection(c, model)) x = linear(x, blocks.project, c.width, plain);
    builder.set_name(x, "residual");
    const std::int64_t s = x.shape()[1];
    if (model.distances) {
      const Scope of_rows(builder, "distance");
      const Shape table{2 * c.distance_kinds, c.width};
      const Value rows =
          builder.state("weight", {DType::F32, table, {}}, Role::Parameter, init_of(c).of(table));
      visible.distances = {norm(rows, "norm", layer),
                           log_distance_kinds(builder, s, s, {c.distance_kinds, c.far_distance})};
    }
    if (model.relative)
      visible.bias = relative_bias(builder, "relative", c.heads, s, s, Distances::Both, init_of(c));
  }
  for (std::int64_t i = 0; i < c.layers; ++i) {
    Scope scope(builder, text(blocks.layers, ".", i));
    if (model.shared_layers && i > 0) scope.share_states(text(blocks.layers, ".0"));
    TransformerLayer at = layer_at(layer, c, i);
    at.bare = model.bare_first && i == 0;
    x = encoder_layer(x, at, visible, pass);
  }
  if (model.pre_norm) x = norm(x, "norm", layer);
  return {x, token};
}

Value rows_at(Value x, Value positions) { return matmul(one_hot(positions, x.shape()[1]), x); }

Value first_rows(Value x) {
  const std::int64_t batch = x.shape()[0];
  const Value zero = broadcast_to(x.builder().constant(0, DType::I32), {batch, 1});
  return reshape(rows_at(x, zero), {batch, x.shape()[2]});
}

Value mean_rows(Value x, Value mask) {
  const std::int64_t batch = x.shape()[0], tokens = x.shape()[1];
  const Value seen = cast(not_equal(mask, x.builder().constant(0, mask.dtype())), DType::F32);
  const Value count = maximum(sum(seen, 1, KeepDim::Yes), x.builder().constant(1, DType::F32));
  const Value of_each = reshape(cast(seen, x.dtype()), {batch, 1, tokens});
  return reshape(matmul(of_each, x), {batch, x.shape()[2]}) / cast(count, x.dtype());
}

Value pooled(const ModelConfig& c, const MaskedModel& model, Value rows) {
  const TransformerLayer layer = encoder_layer_of(c, model);
  const FirstRowHead& head = model.text_head;
  rows = head.activation(linear(rows, head.dense, c.width, {head.bias, layer.residual_init}));
  return head.norm.empty() ? rows : norm(rows, head.norm, layer);
}

namespace {

constexpr const char* kToHaveUsual =
    "; write \"tokenizer_class\": \"BertTokenizer\", or that of your model, into "
    "tokenizer_config.json, or a post_processor of [CLS] A [SEP] into tokenizer.json";

/// The greatest type of the parts of a frame.
std::int32_t greatest_type(const TextFrame& frame) {
  std::int32_t out = 0;
  for (const std::vector<FramePart>* parts : {&frame.single, &frame.pair}) {
    for (const FramePart& part : *parts) out = std::max(out, part.type);
  }
  return out;
}

}  // namespace

SampleFrame encoder_frame(const MaskedModel& model, const Vocabulary& vocabulary) {
  const std::int32_t next = vocabulary.size();
  const std::optional<PairTokens> own = vocabulary.pair_tokens();
  const PairTokens special = own.value_or(PairTokens{next, next + 1, next + 2, next + 3});
  SampleFrame out{text_frame(special[1], special[2], model.doubled_separator), special[0]};
  const Tokenizer* const made = vocabulary.made_elsewhere();
  if (made == nullptr) return out;
  out.pad = made->special_tokens().pad.value_or(out.pad);
  TextFrame theirs = made->frame();
  out.frame.keeps_end = theirs.keeps_end;
  if (!theirs.adds_tokens()) {
    if (own)
      fail(Fault::Data, "the tokenizer's post-processor adds no tokens around a text, but this ",
           "model reads the first, [CLS]", kToHaveUsual);
    return out;
  }
  if (const std::int32_t type = greatest_type(theirs); model.types > 1 && type >= model.types)
    fail(Fault::Data, "the tokenizer's post-processor gives tokens the type ", type,
         ", and the model's table has types 0 and 1; correct post_processor of tokenizer.json");
  out.frame = std::move(theirs);
  return out;
}

void require_end_cut(const TextFrame& frame, std::string_view task) {
  if (frame.keeps_end)
    fail(Fault::Data, "the tokenizer truncates long texts at the beginning ",
         "(truncation_side left), but samples of ", task, " are truncated at the end; write ",
         "\"truncation_side\": \"right\" into tokenizer_config.json");
}

}  // namespace tessera
