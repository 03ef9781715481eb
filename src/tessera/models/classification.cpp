#include "tessera/models/classification.h"

#include <algorithm>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/labelled_texts.h"
#include "tessera/models/layer.h"
#include "tessera/ops/elementwise.h"

namespace tessera {

namespace {

constexpr std::int64_t kUnknownClasses = 2, kMostClasses = 1'000'000'000;

Value encoder_logits(const ModelConfig& c, const MaskedModel& model, const TaskValues& in,
                     const Pass& pass) {
  const LinearOptions plain{true, init_of(c)};
  const double rate = classifier_dropout(c);
  const FirstRowHead& head = model.text_head;
  const Value rows = encode_tokens(c, model, in, pass).rows;
  const bool mean = model.may_pool && c.pooling == kMeanPooling;
  Value features = mean ? mean_rows(rows, in.at("mask")) : first_rows(rows);
  if (head.drops_twice) features = dropout_layer(features, rate, pass.step, "classifier.dropout");
  features = pooled(c, model, features);
  features = dropout_layer(features, rate, pass.step,
                           head.drops_twice ? "classifier.dropout_out" : "dropout");
  return linear(features, head.out, class_count(c), plain);
}

/// What is learned of the logits of texts.
struct TextTask {
  std::string_view name;  // of its TaskKind
  bool numbers = false;   // labels [b, classes] of f32; else [b] of i32
  std::vector<TaskMean> (*means)();
  std::vector<Mean> (*measure)(Value logits, Value labels);
  std::unique_ptr<Judge> (*judge)(const Dataset& data);
};

std::vector<TaskMean> loss_alone() { return {{kLossMean}}; }

constexpr TextTask kTextTasks[] = {
    {kSequenceClassification, false,
     []() -> std::vector<TaskMean> {
       return {{kLossMean}, {"accuracy", 0}};
     },
     [](Value logits, Value labels) -> std::vector<Mean> {
       return {cross_entropy_mean(logits, labels), accuracy(logits, labels)};
     },
     class_judge_of_rows},
    {kRegression, true, loss_alone,
     [](Value logits, Value labels) -> std::vector<Mean> {
       return {masked_mean(squared_error(logits, labels), counted_labels(labels))};
     },
     number_judge_of_rows},
    {kMultiLabelClassification, true, loss_alone,
     [](Value logits, Value labels) -> std::vector<Mean> {
       return {masked_mean(binary_cross_entropy(logits, labels), counted_labels(labels))};
     },
     label_set_judge_of_rows},
};

const TextTask& text_task(std::string_view name) {
  const auto* const found = std::ranges::find(kTextTasks, name, &TextTask::name);
  return found == std::end(kTextTasks) ? kTextTasks[0] : *found;
}

}  // namespace

std::int64_t class_count(const ModelConfig& c) {
  return c.classes == 0 ? kUnknownClasses : c.classes;
}

double classifier_dropout(const ModelConfig& c) {
  return c.classifier_dropout < 0 ? c.dropout : c.classifier_dropout;
}

void find_classifier_problems(const ModelConfig& c, FieldProblems& problems) {
  if (c.classes < 0 || c.classes > kMostClasses)
    problems.add({"classes"}, text("classes is ", c.classes, "; it must be from 1 to ",
                                   kMostClasses, ", or 0 for as many as the data has labels"));
  if (!(c.classifier_dropout == -1 || (c.classifier_dropout >= 0 && c.classifier_dropout < 1)))
    problems.add({"classifier-dropout"},
                 text("classifier-dropout is ", c.classifier_dropout,
                      "; it must be at least 0 and less than 1, or -1 for the rate of dropout"));
  if (c.pooling != kFirstPooling && c.pooling != kMeanPooling)
    problems.add({"pooling"}, text("pooling is '", c.pooling, "'; it can be ", kFirstPooling, ", ",
                                   kMeanPooling));
}

Task text_classification(const ModelConfig& c, TextClassifier classifier) {
  const TextTask& kind = text_task(family_task(c).name);
  const std::int64_t numbers = kind.numbers ? class_count(c) : 0;
  Task out;
  out.name = kind.name;
  out.inputs.push_back({"ids", DType::I32, {c.context}, c.vocabulary});
  if (classifier.types) out.inputs.push_back({"types", DType::I32, {c.context}, 2});
  if (classifier.mask) out.inputs.push_back({"mask", DType::I32, {c.context}, 2});
  if (classifier.last) out.inputs.push_back({"last", DType::I32, {}, c.context});
  out.inputs.push_back({"labels", DType::I32, {}, class_count(c), /*ignorable=*/true});
  if (kind.numbers) out.inputs.back() = {"labels", DType::F32, {numbers}, 0, /*ignorable=*/true};
  out.tokens = c.context;
  out.means = kind.means();
  out.measure = [logits_of = classifier.logits, measure = kind.measure](
                    const TaskValues& in, const Pass& pass) -> Measured {
    const Value logits = logits_of(in, pass);
    return {measure(logits, in.at("labels")), {{"logits", logits}}};
  };
  const auto samples = [c, classifier, numbers](const Dataset& data, DataPart part,
                                                const SampleChoices& choices) {
    const SampleFrame frame = classifier.frame(data.vocabulary);
    return labelled_texts(data, part,
                          {.context = c.context,
                           .frame = frame.frame,
                           .pad = frame.pad,
                           .not_last = frame.not_last,
                           .seed = choices.seed,
                           .buckets = choices.buckets,
                           .most = choices.most,
                           .types = classifier.types,
                           .mask = classifier.mask,
                           .last = classifier.last,
                           .numbers = numbers});
  };
  set_samples(out, samples);
  out.longest_sample = [frame = classifier.frame](const Dataset& data) {
    return longest_sample(data, frame(data.vocabulary).frame);
  };
  out.judge = kind.judge;
  return out;
}

TextClassifier encoder_classifier(const ModelConfig& c, const MaskedModel& model) {
  return {.logits = [c, model](const TaskValues& in,
                               const Pass& pass) { return encoder_logits(c, model, in, pass); },
          .frame = [model](const Vocabulary& v) { return encoder_frame(model, v); },
          .types = model.types > 1,
          .mask = true};
}

}  // namespace tessera
