#include "tessera/models/sentence_embedding.h"

#include <utility>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/text_groups.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

constexpr std::int64_t kUnknownTexts = 2, kMostTexts = 3;
constexpr double kNoCandidate = -1e9;  // the logit of a candidate that is none

/// Text `i` of each sample of x [b, texts, ...]: [b, ...].
Value text_of(Value x, std::int64_t i) {
  Shape shape = x.shape();
  const Value one = slice(x, 1, i, 1);
  Shape out{shape[0]};
  for (int dim = 2; dim < shape.ndim(); ++dim) out.push_back(shape[dim]);
  return reshape(one, out);
}

/// 1 where a row of the whole batch has a sample, [b] of f32: no text begins with padding.
Value are_samples(Value mask) {
  const std::int64_t batch = mask.shape()[0];
  const Value first = reshape(slice(text_of(mask, 0), 1, 0, 1), {batch});
  return whole_batch(cast(not_equal(first, mask.builder().constant(0, mask.dtype())), DType::F32));
}

/// Vectors [b, texts, width] of a batch.
Value vectors_of(const TextEmbedder& embedder, const TaskValues& in, const Pass& pass) {
  const Shape& shape = in.at("ids").shape();
  const std::int64_t batch = shape[0], texts = shape[1], tokens = shape[2];
  TaskValues rows;
  for (const auto& [name, value] : in) rows.emplace(name, reshape(value, {batch * texts, tokens}));
  const Value vectors = embedder.vectors(rows, pass);
  return reshape(vectors, {batch, texts, vectors.shape()[1]});
}

/// Means of the choice of its own positive, for each anchor.
std::vector<Mean> choices_of(Value vectors, Value samples, double scale) {
  Builder& builder = vectors.builder();
  const std::int64_t batch = vectors.shape()[0], texts = vectors.shape()[1];
  std::vector<Value> candidates, there;
  for (std::int64_t i = 1; i < texts; ++i) {
    candidates.push_back(text_of(vectors, i));
    there.push_back(samples);
  }
  const Value logits = similarity_logits(text_of(vectors, 0), candidates, scale) +
                       (concat(there, 0) - 1.0) * -kNoCandidate;  // [b, n] + [n]
  const Value own = iota(builder, {batch}, 0, DType::I32),
              none = builder.constant(kIgnoredLabel, DType::I32);
  const Value labels = select(not_equal(samples, builder.constant(0, DType::F32)), own, none);
  return {cross_entropy_mean(logits, labels), accuracy(logits, labels)};
}

Value encoder_vectors(const ModelConfig& c, const MaskedModel& model, const TaskValues& in,
                      const Pass& pass) {
  const Value rows = encode_tokens(c, model, in, pass).rows;
  return c.sentence_pooling == kMeanPooling ? mean_rows(rows, in.at("mask")) : first_rows(rows);
}

}  // namespace

std::int64_t text_count(const ModelConfig& c) { return c.texts == 0 ? kUnknownTexts : c.texts; }

void find_embedding_problems(const ModelConfig& c, FieldProblems& problems) {
  if (c.texts != 0 && (c.texts < kUnknownTexts || c.texts > kMostTexts))
    problems.add({"texts"}, text("texts is ", c.texts, "; it can be 2, anchor and positive, 3, ",
                                 "with a negative, or 0 for as many as the data has"));
  if (!(c.similarity_scale > 0))
    problems.add({"similarity-scale"},
                 text("similarity-scale is ", c.similarity_scale, "; it must be greater than 0"));
  if (c.sentence_pooling != kFirstPooling && c.sentence_pooling != kMeanPooling)
    problems.add({"sentence-pooling"}, text("sentence-pooling is '", c.sentence_pooling,
                                            "'; it can be ", kFirstPooling, ", ", kMeanPooling));
}

void read_text_groups(Task& task, const ModelConfig& c, const GroupReading& reading) {
  const std::int64_t texts = text_count(c);
  task.inputs.push_back({"ids", DType::I32, {texts, c.context}, c.vocabulary});
  if (reading.types) task.inputs.push_back({"types", DType::I32, {texts, c.context}, 2});
  task.inputs.push_back({"mask", DType::I32, {texts, c.context}, 2});
  task.tokens = texts * c.context;
  set_samples(task, [context = c.context, texts, reading](const Dataset& data, DataPart part,
                                                          const SampleChoices& choices) {
    const SampleFrame frame = reading.frame(data.vocabulary);
    return text_groups(data, part,
                       {.context = context,
                        .texts = texts,
                        .pairs = reading.pairs,
                        .frame = frame.frame,
                        .pad = frame.pad,
                        .seed = choices.seed,
                        .buckets = choices.buckets,
                        .most = choices.most,
                        .types = reading.types});
  });
  task.longest_sample = [reading](const Dataset& data) {
    return longest_of_groups(data, reading.frame(data.vocabulary).frame, reading.pairs);
  };
}

Task sentence_embedding(const ModelConfig& c, TextEmbedder embedder) {
  Task out;
  out.name = kSentenceEmbedding;
  read_text_groups(out, c, {.frame = embedder.frame, .types = embedder.types});
  out.means = {{kLossMean}, {"accuracy", 0}};
  out.measure = [embedder, scale = c.similarity_scale](const TaskValues& in,
                                                       const Pass& pass) -> Measured {
    const Value vectors = vectors_of(embedder, in, pass), samples = are_samples(in.at("mask"));
    return {choices_of(vectors, samples, scale), {{"vectors", unit_rows(vectors)}}};
  };
  out.judge = similarity_judge;
  out.compares_samples = true;
  return out;
}

TextEmbedder encoder_embedder(const ModelConfig& c, const MaskedModel& model) {
  return {.vectors = [c, model](const TaskValues& in,
                                const Pass& pass) { return encoder_vectors(c, model, in, pass); },
          .frame = [model](const Vocabulary& v) { return encoder_frame(model, v); },
          .types = model.types > 1};
}

}  // namespace tessera
