#include "tessera/models/token_classification.h"

#include "tessera/models/layer.h"
#include "tessera/ops/elementwise.h"

namespace tessera {

namespace {

Value token_logits(const ModelConfig& c, const MaskedModel& model, const TaskValues& in,
                   const Pass& pass) {
  Value x = encode_tokens(c, model, in, pass).rows;
  if (model.text_head.on_tokens) x = pooled(c, model, x);
  const Value features = dropout_layer(x, classifier_dropout(c), pass.step, "dropout");
  return linear(features, "classifier", class_count(c), {true, init_of(c)});
}

}  // namespace

Task token_classification(const ModelConfig& c, TextClassifier classifier) {
  classifier.frame = [frame = classifier.frame](const Vocabulary& v) -> SampleFrame {
    SampleFrame out = frame(v);
    require_end_cut(out.frame, kTokenClassification);
    return out;
  };
  Task out = text_classification(c, classifier);
  out.name = kTokenClassification;
  out.inputs.back().sample = {c.context};  // labels
  out.measure = [logits_of = classifier.logits](const TaskValues& in,
                                                const Pass& pass) -> Measured {
    const Value logits = logits_of(in, pass), labels = in.at("labels");
    return {{cross_entropy_mean(logits, labels), accuracy(logits, labels)},
            {{"logits", logits}, {"labels", cast(labels, DType::F32)}}};
  };
  out.judge = tag_judge;
  return out;
}

Task encoder_token_classification(const ModelConfig& c, const MaskedModel& model) {
  TextClassifier classifier = encoder_classifier(c, model);
  classifier.logits = [c, model](const TaskValues& in, const Pass& pass) {
    return token_logits(c, model, in, pass);
  };
  return token_classification(c, classifier);
}

}  // namespace tessera
