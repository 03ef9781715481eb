#include "tessera/models/multiple_choice.h"

#include <utility>

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/text_groups.h"
#include "tessera/models/sentence_embedding.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

constexpr std::int64_t kMostChoices = 1000;
constexpr double kNoChoice = -3e4;  // the logit of a choice that is none, also in f16

/// A head of texts with one class.
TextClassifier choice_classifier(const ModelConfig& c, MaskedModel model) {
  if (model.choice_head) model.text_head = *model.choice_head;
  ModelConfig one = c;
  one.classes = 1;
  if (model.text_head.drops_as_layers) one.classifier_dropout = -1;
  return encoder_classifier(one, model);
}

/// Logits [b, choices] of a batch.
Value choice_logits(const TextClassifier& classifier, const TaskValues& in, const Pass& pass) {
  const Value mask = in.at("mask");
  const Shape& shape = mask.shape();
  const std::int64_t batch = shape[0], choices = shape[1], tokens = shape[2];
  Builder& builder = mask.builder();
  const auto is_any = [&](Value x) {
    return cast(not_equal(x, builder.constant(0, x.dtype())), DType::F32);
  };
  const Value seen = is_any(mask), none = is_any(sum(seen, 2)) - 1.0;  // -1: there is no choice
  TaskValues rows;
  for (const auto& [name, value] : in)
    if (name != "labels") rows.emplace(name, reshape(value, {batch * choices, tokens}));
  // By these names the texts of a sample stay together on every mesh.
  builder.set_name(none, "none_of_texts");
  // A softmax of nothing would be no number: what is no choice sees all its padding.
  rows.at("mask") = reshape(cast(seen - reshape(none, {batch, choices, 1}), DType::I32),
                            {batch * choices, tokens});
  const Value each = classifier.logits(rows, pass);
  builder.set_name(each, "each_of_texts");
  const Value logits = reshape(each, {batch, choices});
  builder.set_name(logits, "logits_of_texts");
  return logits + none * -kNoChoice;
}

}  // namespace

void find_choice_problems(const ModelConfig& c, FieldProblems& problems) {
  if (c.texts != 0 && (c.texts < 2 || c.texts > kMostChoices))
    problems.add({"texts"}, text("texts is ", c.texts, "; choices can be from 2 to ", kMostChoices,
                                 ", or 0 for as many as the data has"));
  find_classifier_problems(c, problems);
}

Task multiple_choice(const ModelConfig& c, const MaskedModel& model) {
  const TextClassifier classifier = choice_classifier(c, model);
  Task out;
  out.name = kMultipleChoice;
  read_text_groups(out, c, {.frame = classifier.frame, .types = classifier.types, .pairs = true});
  out.inputs.push_back({"labels", DType::I32, {}, text_count(c), /*ignorable=*/true});
  out.means = {{kLossMean}, {"accuracy", 0}};
  out.measure = [classifier](const TaskValues& in, const Pass& pass) -> Measured {
    const Value logits = choice_logits(classifier, in, pass), labels = in.at("labels");
    return {{cross_entropy_mean(logits, labels), accuracy(logits, labels)}, {{"logits", logits}}};
  };
  out.judge = choice_judge_of_rows;
  return out;
}

}  // namespace tessera
