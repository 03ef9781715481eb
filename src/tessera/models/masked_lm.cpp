#include "tessera/models/masked_lm.h"

#include "tessera/data/sentence_pairs.h"
#include "tessera/models/layer.h"
#include "tessera/models/sentence_files.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

TransformerLayer masked_layer(const ModelConfig& c, const MaskedModel& model) {
  TransformerLayer out = layer_of(c);
  out.feed_forward = model.feed_forward;
  out.post_norm = out.bias = true;
  return out;
}

/// Rows of x [b, s, d] at positions [b, k]: [b, k, d]. Exact: all but one term of each sum are 0.
/// Where the sequence is split, ranks exchange these rows alone.
Value rows_at(Value x, Value positions) { return matmul(one_hot(positions, x.shape()[1]), x); }

struct MaskedLogits {
  Value tokens;  // [b, s, vocabulary], or [b, k, vocabulary] at k masked positions
  Value second;  // [b, 2]; of two parts
};

/// How wide the tables are.
std::int64_t table_width(const ModelConfig& c, const MaskedModel& model) {
  return model.factorised ? c.embedded() : c.width;
}

/// Tokens, types and positions, added up.
EmbeddingResult masked_embedding(const ModelConfig& c, const MaskedModel& model,
                                 const TaskValues& in) {
  const WeightInit init = init_of(c);
  const Value ids = in.at("ids");
  const std::int64_t width = table_width(c, model);
  EmbeddingResult out = embedding(ids, "token", c.vocabulary, width, init);
  if (in.contains("types")) {
    out.rows = out.rows + embedding(in.at("types"), "type", 2, width, init).rows;
  } else {
    const Scope scope(ids.builder(), "type");
    const Shape row{1, width};
    out.rows = out.rows +
               ids.builder().state("weight", {DType::F32, row, {}}, Role::Parameter, init.of(row));
  }
  out.rows = learned_positions(out.rows, "position", c.most_positions(), init, {}, {},
                               model.unread_positions);
  return out;
}

MaskedLogits masked_transformer(const ModelConfig& c, const MaskedModel& model,
                                const TaskValues& in, const Pass& pass) {
  const TransformerLayer layer = masked_layer(c, model);
  const LinearOptions plain{true, init_of(c)};
  const Value seen = in.at("mask");
  Builder& builder = seen.builder();
  const std::int64_t batch = seen.shape()[0];
  Value x, token;
  {
    const Scope scope(builder, "embed");
    const EmbeddingResult all = masked_embedding(c, model, in);
    token = all.table;
    x = dropout_layer(norm(all.rows, "norm", layer), c.dropout, pass.step, "dropout");
    if (model.factorised) x = linear(x, "project", c.width, plain);
    builder.set_name(x, "residual");
  }
  const Value visible = not_equal(seen, builder.constant(0, seen.dtype()));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    Scope scope(builder, text("layers.", i));
    if (model.shared_layers && i > 0) scope.share_states("layers.0");
    x = encoder_layer(x, layer, {.mask = visible}, pass);
  }
  MaskedLogits out;
  {
    const Scope scope(builder, "mlm");
    const GeluForm form =
        model.feed_forward == FeedForward::GeluErf ? GeluForm::Erf : GeluForm::Tanh;
    Value rows = c.masked_positions > 0 ? rows_at(x, in.at("masked_positions")) : x;
    rows = norm(gelu(linear(rows, "dense", table_width(c, model), plain), form), "norm", layer);
    const Value bias = builder.state("bias", {DType::F32, {c.vocabulary}, {}}, Role::Parameter,
                                     {Init::Kind::Constant, 0});
    out.tokens = matmul(rows, token, {.trans_b = true}) + bias;
  }
  if (model.parts == SampleParts::One) return out;
  const Value zero = broadcast_to(builder.constant(0, DType::I32), {batch, 1});
  const Value first = reshape(rows_at(x, zero), {batch, c.width});
  out.second = linear(tanh(linear(first, "pooler", c.width, plain)), model.second, 2, plain);
  return out;
}

std::unique_ptr<Samples> sentence_samples(const ModelConfig& c, const Dataset& data, DataPart part,
                                          const SampleChoices& choices) {
  return sentence_pairs(
      *data.token_files, data.vocabulary,
      {sentence_choice(c, part, choices, c.context), c.masked_positions, choices.most});
}

}  // namespace

Task masked_lm(const ModelConfig& c, const MaskedModel& model) {
  const std::int64_t context = c.context, predicted = c.masked_positions;
  const bool two = model.parts != SampleParts::One;
  Task out;
  out.name = "masked_lm";
  out.inputs.push_back({"ids", DType::I32, {context}, c.vocabulary});
  if (two) out.inputs.push_back({"types", DType::I32, {context}, 2});
  out.inputs.push_back({"mask", DType::I32, {context}, 2});
  out.inputs.push_back({"labels",
                        DType::I32,
                        {predicted > 0 ? predicted : context},
                        c.vocabulary,
                        /*ignorable=*/true});
  if (two) out.inputs.push_back({"next", DType::I32, {}, 2, /*ignorable=*/true});
  if (predicted > 0) out.inputs.push_back({"masked_positions", DType::I32, {predicted}, context});
  out.tokens = context;
  out.means = {{"mlm_loss"}, {"mlm_accuracy", 0}};
  if (two)
    out.means = {{"mlm_loss"},
                 {text(model.second, "_loss")},
                 {"mlm_accuracy", 0},
                 {text(model.second, "_accuracy"), 0}};
  out.measure = [c, model, two](const TaskValues& in, const Pass& pass) -> std::vector<Mean> {
    const MaskedLogits logits = masked_transformer(c, model, in, pass);
    const Value labels = in.at("labels");
    if (!two) return {cross_entropy_mean(logits.tokens, labels), accuracy(logits.tokens, labels)};
    const Value next = in.at("next");
    return {cross_entropy_mean(logits.tokens, labels), cross_entropy_mean(logits.second, next),
            accuracy(logits.tokens, labels), accuracy(logits.second, next)};
  };
  const auto options = [context, predicted, parts = model.parts](const Dataset& data,
                                                                 const SampleChoices& choices) {
    return MaskedPairsOptions{context,       data.vocabulary.size(),        predicted, choices.seed,
                              choices.order, data.vocabulary.pair_tokens(), parts};
  };
  if (model.sentence_files) out.token_files = sentence_file_use(c, c.context);
  out.train_samples = [c, options](const Dataset& data, const SampleChoices& choices) {
    if (data.token_files) return sentence_samples(c, data, DataPart::Train, choices);
    return masked_pairs(data.tokens.train(), options(data, choices));
  };
  out.valid_samples = [c, options](const Dataset& data, const SampleChoices& choices) {
    if (data.token_files) return sentence_samples(c, data, DataPart::Valid, choices);
    return fixed_masked_pairs(data.tokens.held_out(), options(data, choices), choices.most);
  };
  return out;
}

void find_masked_problems(const ModelConfig& c, const MaskedModel& model, FieldProblems& problems) {
  const std::int64_t least = least_context(model.parts);
  if (c.context >= 1 && c.context < least)
    problems.add({"context"}, text("context is ", c.context, "; a sample of ", c.family, " has ",
                                   model.parts == SampleParts::One
                                       ? "[CLS], [SEP] and a token"
                                       : "[CLS], two [SEP] and a token for each of two parts",
                                   ", so give at least ", least));
  if (c.masked_positions < 0 || (c.context >= 1 && c.masked_positions > c.context))
    problems.add({"masked-positions", "context"},
                 text("masked-positions is ", c.masked_positions,
                      "; it must be from 0 to the context of ", c.context));
}

}  // namespace tessera
