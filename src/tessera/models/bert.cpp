/// BERT (Devlin et al. 2018, arXiv 1810.04805): post-norm layers that see the whole sample, GELU.
/// It learns masked tokens, and whether the second part of a sample follows the first. There
/// are biases, and the tokens' decoder is the token embedding.

#include "tessera/data/masked_pairs.h"
#include "tessera/data/sentence_pairs.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

TransformerLayer bert_layer(const ModelConfig& c) {
  TransformerLayer out = layer_of(c);
  out.feed_forward = FeedForward::GeluErf;
  out.post_norm = out.bias = true;
  return out;
}

/// Rows of x [b, s, d] at positions [b, k]: [b, k, d]. Exact: all but one term of each sum are 0.
/// Where the sequence is split, ranks exchange these rows alone.
Value rows_at(Value x, Value positions) { return matmul(one_hot(positions, x.shape()[1]), x); }

struct BertLogits {
  Value tokens;  // [b, s, vocabulary], or [b, k, vocabulary] at k masked positions
  Value next;    // [b, 2]
};

/// Blocks: embed, layers.N, mlm, pooler, nsp.
BertLogits bert(const ModelConfig& c, const TaskValues& in, const Pass& pass) {
  const TransformerLayer layer = bert_layer(c);
  const WeightInit init = init_of(c);
  const LinearOptions plain{true, init};
  const Value ids = in.at("ids"), seen = in.at("mask");
  Builder& builder = ids.builder();
  const std::int64_t batch = ids.shape()[0];
  Value x, token;
  {
    const Scope scope(builder, "embed");
    const EmbeddingResult tokens = embedding(ids, "token", c.vocabulary, c.width, init);
    token = tokens.table;
    x = tokens.rows + embedding(in.at("types"), "type", 2, c.width, init).rows;
    x = norm(learned_positions(x, "position", c.most_positions(), init), "norm", layer);
    x = dropout_layer(x, c.dropout, pass.step, "dropout");
    builder.set_name(x, "residual");
  }
  const Value visible = not_equal(seen, builder.constant(0, seen.dtype()));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope scope(builder, text("layers.", i));
    x = encoder_layer(x, layer, {.mask = visible}, pass);
  }
  BertLogits out;
  {
    const Scope scope(builder, "mlm");
    Value rows = c.masked_positions > 0 ? rows_at(x, in.at("masked_positions")) : x;
    rows = norm(gelu(linear(rows, "dense", c.width, plain), GeluForm::Erf), "norm", layer);
    const Value bias = builder.state("bias", {DType::F32, {c.vocabulary}, {}}, Role::Parameter,
                                     {Init::Kind::Constant, 0});
    out.tokens = matmul(rows, token, {.trans_b = true}) + bias;
  }
  const Value zero = broadcast_to(builder.constant(0, DType::I32), {batch, 1});
  const Value first = reshape(rows_at(x, zero), {batch, c.width});
  out.next = linear(tanh(linear(first, "pooler", c.width, plain)), "nsp", 2, plain);
  return out;
}

/// Inputs: as data/masked_pairs.h says. Loss: the sum of the mean cross-entropies of the tokens
/// that are predicted and of whether B follows A.
Task bert_task(const ModelConfig& c) {
  const std::int64_t context = c.context, predicted = c.masked_positions;
  Task out;
  out.name = "masked-lm";
  out.inputs = {{"ids", DType::I32, {context}, c.vocabulary},
                {"types", DType::I32, {context}, 2},
                {"mask", DType::I32, {context}, 2},
                {"labels",
                 DType::I32,
                 {predicted > 0 ? predicted : context},
                 c.vocabulary,
                 /*ignorable=*/true},
                {"next", DType::I32, {}, 2, /*ignorable=*/true}};
  if (predicted > 0) out.inputs.push_back({"masked_positions", DType::I32, {predicted}, context});
  out.tokens = context;
  out.means = {{"mlm_loss"}, {"nsp_loss"}, {"mlm_accuracy", 0}, {"nsp_accuracy", 0}};
  out.measure = [c](const TaskValues& in, const Pass& pass) -> std::vector<Mean> {
    const BertLogits logits = bert(c, in, pass);
    const Value labels = in.at("labels"), next = in.at("next");
    return {cross_entropy_mean(logits.tokens, labels), cross_entropy_mean(logits.next, next),
            accuracy(logits.tokens, labels), accuracy(logits.next, next)};
  };
  const auto options = [context, predicted](const Dataset& data, const SampleChoices& choices) {
    return MaskedPairsOptions{context,      data.vocabulary.size(), predicted,
                              choices.seed, choices.order,          data.vocabulary.pair_tokens()};
  };
  const auto choice_of = [c](DataPart part, const SampleChoices& choices) {
    TokenSampleChoice out{
        part, c.context, c.vocabulary, {}, static_cast<std::uint32_t>(choices.seed)};
    if (choices.in_all > 0) out.samples = choices.in_all;
    return out;
  };
  out.token_files = {[choice_of](const TokenFiles& files, const SampleChoices& choices) {
                       return sentence_pairs_in_epoch(files, choice_of(DataPart::Train, choices));
                     },
                     [choice_of](const TokenFiles& files, const SampleChoices& choices) {
                       return sentence_pairs_order(files, choice_of(DataPart::Train, choices));
                     }};
  const auto of_sentences = [choice_of, predicted](const Dataset& data, DataPart part,
                                                   const SampleChoices& choices) {
    return sentence_pairs(*data.token_files, data.vocabulary,
                          {choice_of(part, choices), predicted, choices.most});
  };
  out.train_samples = [=](const Dataset& data, const SampleChoices& choices) {
    if (data.token_files) return of_sentences(data, DataPart::Train, choices);
    return masked_pairs(data.tokens.train(), options(data, choices));
  };
  out.valid_samples = [=](const Dataset& data, const SampleChoices& choices) {
    if (data.token_files) return of_sentences(data, DataPart::Valid, choices);
    return fixed_masked_pairs(data.tokens.held_out(), options(data, choices), choices.most);
  };
  return out;
}

constexpr TensorCut kBertCuts[] = {{"mlm.bias", 0, 1}};

constexpr ReadField kBertReads[] = {
    {"layers"},   {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"},
    {"context"},  {"positions"}, {"vocab-size"}, {"dropout"}, {"masked-positions"},
    {"norm-eps"}, {"init-std"}};

}  // namespace

constinit const ModelFamily kBert = {
    .name = "bert",
    .doc = "post-norm, sees both sides, masked tokens and next parts",
    .reads = kBertReads,
    .task = bert_task,
    .publish = [](ModelConfig& config) { config.norm_eps = 1e-12; },
    .find_problems =
        [](const ModelConfig& c, FieldProblems& problems) {
          if (c.context >= 1 && c.context < kLeastPairContext)
            problems.add({"context"},
                         text("context is ", c.context, "; a sample of bert has [CLS], two ",
                              "[SEP] and a token for each of two parts, so give at least ",
                              kLeastPairContext));
          if (c.masked_positions < 0 || (c.context >= 1 && c.masked_positions > c.context))
            problems.add({"masked-positions", "context"},
                         text("masked-positions is ", c.masked_positions,
                              "; it must be from 0 to the context of ", c.context));
        },
    .cuts = kBertCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
