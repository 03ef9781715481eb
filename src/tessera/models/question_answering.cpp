#include "tessera/models/question_answering.h"

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/models/layer.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

QuestionSamplesOptions question_options(const ModelConfig& c, const MaskedModel& model,
                                        const Vocabulary& vocabulary,
                                        const SampleChoices& choices) {
  const SampleFrame frame = encoder_frame(model, vocabulary);
  require_end_cut(frame.frame, kQuestionAnswering);
  if (frame.frame.pair.front().text >= 0)
    fail(Fault::Data, "the tokenizer's post-processor begins a pair with a text, but the first ",
         "token of a sample means no answer; write a post_processor of [CLS] A [SEP] B [SEP] ",
         "into tokenizer.json");
  return {.context = c.context,
          .doc_stride = c.doc_stride,
          .frame = frame.frame,
          .pad = frame.pad,
          .seed = choices.seed,
          .most = choices.most,
          .types = model.types > 1};
}

}  // namespace

Task encoder_question_answering(const ModelConfig& c, const MaskedModel& model) {
  Task out;
  out.name = kQuestionAnswering;
  out.inputs.push_back({"ids", DType::I32, {c.context}, c.vocabulary});
  if (model.types > 1) out.inputs.push_back({"types", DType::I32, {c.context}, 2});
  out.inputs.push_back({"mask", DType::I32, {c.context}, 2});
  out.inputs.push_back({"start", DType::I32, {}, c.context, /*ignorable=*/true});
  out.inputs.push_back({"end", DType::I32, {}, c.context, /*ignorable=*/true});
  out.tokens = c.context;
  out.means = {{"start_loss", 0.5}, {"end_loss", 0.5}};
  out.measure = [c, model](const TaskValues& in, const Pass& pass) -> Measured {
    Value x = encode_tokens(c, model, in, pass).rows;
    if (model.text_head.on_tokens) x = pooled(c, model, x);
    if (model.drops_before_answers)
      x = dropout_layer(x, classifier_dropout(c), pass.step, "dropout");
    const Value both = linear(x, model.answers, 2, {true, init_of(c)});
    const Shape rows{x.shape()[0], c.context};
    const Value start = reshape(slice(both, 2, 0, 1), rows),
                end = reshape(slice(both, 2, 1, 1), rows);
    return {{cross_entropy_mean(start, in.at("start")), cross_entropy_mean(end, in.at("end"))},
            {{"start", start}, {"end", end}}};
  };
  const auto samples = [c, model](const Dataset& data, DataPart part,
                                  const SampleChoices& choices) {
    return question_samples(data, part, question_options(c, model, data.vocabulary, choices));
  };
  set_samples(out, samples);
  out.longest_sample = [model](const Dataset& data) {
    return longest_question_sample(data, encoder_frame(model, data.vocabulary).frame);
  };
  out.judge = [c, model](const Dataset& data) {
    return answer_judge(data, question_options(c, model, data.vocabulary, {}), c.max_answer_length);
  };
  return out;
}

void find_question_problems(const ModelConfig& c, FieldProblems& problems) {
  find_classifier_problems(c, problems);
  if (c.doc_stride < 0)
    problems.add({"doc-stride"}, text("doc-stride is ", c.doc_stride, "; it must be 0 or more"));
  if (c.max_answer_length < 1)
    problems.add({"max-answer-length"},
                 text("max-answer-length is ", c.max_answer_length, "; it must be 1 or more"));
}

}  // namespace tessera
