#include "tessera/models/masked_lm.h"

#include "tessera/data/dataset.h"
#include "tessera/models/layer.h"
#include "tessera/models/sentence_files.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/token_files/sentence_pairs.h"

namespace tessera {

namespace {

struct MaskedLogits {
  Value tokens;  // as masked_logits
  Value second;  // [b, 2]; of two parts
};

MaskedLogits masked_transformer(const ModelConfig& c, const MaskedModel& model, SampleParts parts,
                                const TaskValues& in, const Pass& pass) {
  const EncodedTokens read = encode_tokens(c, model, in, pass);
  MaskedLogits out;
  out.tokens = masked_logits(c, model, read, in);
  if (parts != SampleParts::One)
    out.second =
        linear(pooled(c, model, first_rows(read.rows)), model.second, 2, {true, init_of(c)});
  return out;
}

std::unique_ptr<Samples> sentence_samples(const ModelConfig& c, const Dataset& data, DataPart part,
                                          const SampleChoices& choices) {
  return sentence_pairs(
      *data.token_files(), data.vocabulary,
      {sentence_choice(c, part, choices, c.context), c.masked_positions, choices.most});
}

/// Samples have [CLS] A [SEP], and [SEP] behind B, whatever a tokenizer says: it has to say that.
void require_usual_frame(const MaskedModel& model, SampleParts parts, const Vocabulary& vocabulary,
                         const PairTokens& special) {
  const TextFrame theirs = encoder_frame(model, vocabulary).frame,
                  usual = text_frame(special[1], special[2], /*doubled=*/false);
  const std::size_t texts = parts == SampleParts::One ? 1 : 2;
  const auto without_types = [texts](const TextFrame& frame) {
    std::vector<FramePart> out = frame.of(texts);
    for (FramePart& part : out) part.type = 0;
    return out;
  };
  if (theirs.of(texts) == usual.of(texts)) return;
  if (without_types(theirs) == without_types(usual))
    fail(Fault::Data, "the tokenizer does not give two texts the types 0 and 1 (does ",
         "model_input_names of tokenizer_config.json lack token_type_ids?), which pairs of ",
         "masked words need; add it, or give the tokenizer of such a model");
  fail(Fault::Data, "the tokenizer's post-processor does not put ",
       texts == 1 ? "[CLS] A [SEP]" : "[CLS] A [SEP] B [SEP]", " around ",
       texts == 1 ? "a text" : "two texts", ", which is how masked words are learned; correct ",
       "post_processor of tokenizer.json, or give the tokenizer of such a model");
}

}  // namespace

Value masked_logits(const ModelConfig& c, const MaskedModel& model, const EncodedTokens& read,
                    const TaskValues& in, std::string_view block) {
  const Value x =
      c.masked_positions > 0 ? rows_at(read.rows, in.at("masked_positions")) : read.rows;
  Builder& builder = x.builder();
  Value rows;
  if (model.text_head.on_tokens) rows = pooled(c, model, x);
  const Scope scope(builder, block);
  if (!rows.valid()) {
    const GeluForm form =
        model.feed_forward == FeedForward::GeluErf ? GeluForm::Erf : GeluForm::Tanh;
    rows = linear(x, "dense", table_width(c, model), {true, init_of(c)});
    rows = norm(gelu(rows, form), "norm", encoder_layer_of(c, model));
  }
  const Value bias = builder.state("bias", {DType::F32, {c.vocabulary}, {}}, Role::Parameter,
                                   {Init::Kind::Constant, 0});
  return matmul(rows, read.table, {.trans_b = true}) + bias;
}

Task masked_lm(const ModelConfig& c, const MaskedModel& model, SampleParts parts) {
  const std::int64_t context = c.context, predicted = c.masked_positions;
  const bool two = parts != SampleParts::One;
  Task out;
  out.name = (two ? kPretraining : kMaskedLm).name;
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
  if (!two) out.perplexity_of = "mlm_loss";
  if (two)
    out.means = {{"mlm_loss"},
                 {text(model.second, "_loss")},
                 {"mlm_accuracy", 0},
                 {text(model.second, "_accuracy"), 0}};
  out.measure = [c, model, parts, two](const TaskValues& in,
                                       const Pass& pass) -> std::vector<Mean> {
    const MaskedLogits logits = masked_transformer(c, model, parts, in, pass);
    const Value labels = in.at("labels");
    if (!two) return {cross_entropy_mean(logits.tokens, labels), accuracy(logits.tokens, labels)};
    const Value next = in.at("next");
    return {cross_entropy_mean(logits.tokens, labels), cross_entropy_mean(logits.second, next),
            accuracy(logits.tokens, labels), accuracy(logits.second, next)};
  };
  const auto options = [context, predicted, parts, model](const Dataset& data,
                                                          const SampleChoices& choices) {
    const std::optional<PairTokens> special = data.vocabulary.pair_tokens();
    if (special) require_usual_frame(model, parts, data.vocabulary, *special);
    MaskedPairsOptions out{
        context, data.vocabulary.size(), predicted, choices.seed, choices.order, special, parts};
    out.longest_run = model.longest_run;
    if (model.longest_run > 1) out.begins_word = word_begins(data.vocabulary);
    out.masks_alone = model.masks_alone;
    return out;
  };
  if (model.sentence_files && two) out.token_files = sentence_file_use(c, c.context);
  out.train_samples = [c, options](const Dataset& data, const SampleChoices& choices) {
    if (data.token_files() != nullptr) return sentence_samples(c, data, DataPart::Train, choices);
    return masked_pairs(data.texts().tokens.train(), options(data, choices));
  };
  out.valid_samples = [c, options](const Dataset& data, const SampleChoices& choices) {
    if (data.token_files() != nullptr) return sentence_samples(c, data, DataPart::Valid, choices);
    return fixed_masked_pairs(data.texts().tokens.held_out(), options(data, choices), choices.most);
  };
  return out;
}

void find_masked_problems(const ModelConfig& c, SampleParts parts, FieldProblems& problems) {
  const std::int64_t least = least_context(parts);
  if (c.context >= 1 && c.context < least)
    problems.add({"context"}, text("context is ", c.context, "; a sample of ", c.family, " has ",
                                   parts == SampleParts::One
                                       ? "[CLS], [SEP] and a token"
                                       : "[CLS], two [SEP] and a token for each of two parts",
                                   ", so give at least ", least));
  if (c.masked_positions < 0 || (c.context >= 1 && c.masked_positions > c.context))
    problems.add({"masked-positions", "context"},
                 text("masked-positions is ", c.masked_positions,
                      "; it must be from 0 to the context of ", c.context));
}

}  // namespace tessera
