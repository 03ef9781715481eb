#include "tessera/models/pair_classification.h"

#include "tessera/models/layer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

namespace {

/// The start token, and all but the last id: [b, s].
Value behind_start(const ModelConfig& c, Value ids) {
  const std::int64_t b = ids.shape()[0], s = ids.shape()[1];
  const Value start =
      broadcast_to(ids.builder().constant(translation_tokens(c).start, DType::I32), {b, 1});
  return s == 1 ? start : concat({start, slice(ids, 1, 0, s - 1)}, 1);
}

TextFrame ended_frame(const TranslationTokens& tokens) {
  const FramePart end{.id = tokens.end};
  TextFrame out;
  out.single = {{.text = 0}, end};
  out.pair = {{.text = 0}, end, {.text = 1}, end};
  if (tokens.first) {
    for (std::vector<FramePart>* parts : {&out.single, &out.pair})
      parts->insert(parts->begin(), {.id = *tokens.first});
  }
  return out;
}

void require_ended(const std::vector<FramePart>& parts, std::int32_t end) {
  const FramePart& last = parts.back();
  if (last.text < 0 && last.id == end) return;
  fail(Fault::Data, "the tokenizer puts no end token (", end, ") behind the texts of a sample, by ",
       "whose row a model that writes texts tells their class; give the model's own tokenizer");
}

}  // namespace

TextClassifier pair_classifier(const ModelConfig& c, DecoderRows rows, const WeightInit& init) {
  TextClassifier out{.mask = true, .last = true};
  out.logits = [c, rows, init](const TaskValues& in, const Pass& pass) -> Value {
    ModelConfig of_texts = c;
    of_texts.source_context = c.context;
    const Value ids = in.at("ids");
    Pass of_source = pass;
    of_source.mask = in.at("mask");
    const Value x = rows(of_texts, ids, behind_start(c, ids), of_source);
    const std::int64_t batch = x.shape()[0];
    Value y = reshape(rows_at(x, reshape(in.at("last"), {batch, 1})), {batch, c.width});
    const LinearOptions plain{true, init};
    const double rate = classifier_dropout(c);
    y = dropout_layer(y, rate, pass.step, "classifier.dropout");
    y = tanh(linear(y, "classifier.dense", c.width, plain));
    y = dropout_layer(y, rate, pass.step, "classifier.dropout_out");
    return linear(y, "classifier.out_proj", class_count(c), plain);
  };
  out.frame = [c](const Vocabulary& vocabulary) -> SampleFrame {
    const TranslationTokens tokens = translation_tokens(c);
    const Tokenizer* const made = vocabulary.made_elsewhere();
    if (made == nullptr) return {ended_frame(tokens), tokens.pad, {}};
    const TextFrame frame = made->frame();
    require_ended(frame.single, tokens.end);
    require_ended(frame.pair, tokens.end);
    return {frame, tokens.pad, {}};
  };
  return out;
}

}  // namespace tessera
