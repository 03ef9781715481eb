#include "tessera/models/replaced_tokens.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/divisors.h"
#include "tessera/base/text.h"
#include "tessera/models/layer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera {

namespace {

constexpr double kDiscriminatorWeight = 50;
constexpr EncoderBlocks kGeneratorBlocks{.project = "generator_project",
                                         .layers = "generator.layers"};
constexpr EncoderBlocks kDiscriminatorBlocks{.embed = "corrupted", .owner = "embed"};
constexpr const char* kGeneratorHead = "generator_mlm";

/// Which tokens of samples are predicted, and values of these at their places.
class MaskedPlaces {
 public:
  explicit MaskedPlaces(const TaskValues& in) : ids_(in.at("ids")) {
    const Value labels = in.at("labels");
    counted_ = not_equal(labels, number(kIgnoredLabel));
    if (in.contains("masked_positions"))
      places_ = select(counted_, in.at("masked_positions"), number(-1));
    original = put(labels);
  }
  /// The ids [b, s], and `values` [b, s], or [b, k] at k masked positions, where tokens are
  /// predicted.
  Value put(Value values) const {
    if (!places_.valid()) return select(counted_, values, ids_);
    const Value is_there = spread(cast(counted_, DType::I32));
    return select(less(number(0), is_there), spread(values), ids_);
  }

  Value original;  // the tokens of the text

 private:
  Value number(std::int64_t value) const {
    return ids_.builder().constant(static_cast<double>(value), DType::I32);
  }
  /// [b, k] -> [b, s]; zeros elsewhere.
  Value spread(Value values) const { return sum(place(places_, values, ids_.shape()[1]), 1); }

  Value ids_, counted_, places_;
};

/// The mean over tokens of how badly, and of how often rightly, `scores` [b, s] tell that tokens
/// are `replaced`, of bool; `seen` is 0 at padding.
std::pair<Mean, Mean> judged(Value scores, Value replaced, Value seen) {
  const Value is_there =
      cast(not_equal(seen, seen.builder().constant(0, seen.dtype())), DType::F32);
  // Of a score z and a z' of 0, softmax has sigmoid(z).
  Shape one = scores.shape();
  one.push_back(1);
  const Value logits = pad(reshape(scores, one), scores.ndim(), 1, 2);
  const Value loss = cross_entropy(logits, cast(replaced, DType::I32)).loss;
  const Value says = less(scores.builder().constant(0, scores.dtype()), scores);
  const Value right = equal(cast(says, DType::I32), cast(replaced, DType::I32));
  return {masked_mean(loss, is_there), masked_mean(cast(right, DType::F32), is_there)};
}

std::vector<Mean> replaced_token_means(const ModelConfig& c, const MaskedModel& model,
                                       const TaskValues& in, const Pass& pass) {
  const ModelConfig generator = generator_of(c);
  Builder& builder = in.at("ids").builder();
  const EncodedTokens read = encode_tokens(generator, model, in, pass, kGeneratorBlocks);
  declare_projection(c, model, builder);
  const Value logits = masked_logits(generator, model, read, in, kGeneratorHead);
  const MaskedPlaces masked(in);
  Mean loss, accurate;
  TaskValues corrupted = in;
  {
    const Scope scope(builder, kGeneratorHead);  // logits stay where they are made
    loss = cross_entropy_mean(logits, in.at("labels"));
    accurate = accuracy(logits, in.at("labels"));
    corrupted["ids"] = masked.put(drawn_tokens(logits, pass.step, "drawn"));
  }
  const Value rows = encode_tokens(c, model, corrupted, pass, kDiscriminatorBlocks).rows;
  const Scope scope(builder, "rtd");
  const LinearOptions plain{true, init_of(c)};
  const Value scores =
      linear(gelu(linear(rows, "dense", c.width, plain), GeluForm::Erf), "out", 1, plain);
  const auto [found, right] =
      judged(reshape(scores, in.at("ids").shape()), not_equal(corrupted.at("ids"), masked.original),
             in.at("mask"));
  return {loss, found, accurate, right};
}

}  // namespace

ModelConfig generator_of(const ModelConfig& c) {
  ModelConfig out = c;
  out.width = c.generator();
  out.embedding_width = c.embedded();
  const double share = static_cast<double>(out.width) / static_cast<double>(c.width);
  const auto in_proportion = [&](std::int64_t size) {
    return std::max<std::int64_t>(std::llround(static_cast<double>(size) * share), 1);
  };
  out.kv_heads = 0;
  const std::int64_t most = in_proportion(c.heads);
  for (const std::int64_t divisor : divisors_of(out.width)) {
    if (divisor <= most) out.heads = divisor;
  }
  out.ffn_width = in_proportion(c.hidden());
  return out;
}

std::int64_t generator_heads(const ModelConfig& c) {
  const bool has_one =
      c.heads > 0 && c.width > 0 && c.generator_width >= 0 && reads_field(c, "generator-width");
  return has_one ? generator_of(c).heads : c.heads;
}

void find_replaced_token_problems(const ModelConfig& c, FieldProblems& problems) {
  find_masked_problems(c, SampleParts::One, problems);
  if (c.generator_width > c.width)
    problems.add({"generator-width", "width"},
                 text("generator-width is ", c.generator_width, " and width ", c.width,
                      "; a generator is as wide as the discriminator at most"));
}

Value drawn_tokens(Value logits, Value step, std::string_view name) {
  Builder& builder = logits.builder();
  Shape shape = logits.shape();
  if (!step.valid()) {
    shape[0] = 1;
    step = builder.constant(0, DType::I64);
  }
  // Waiting times -log(u) / p: the shortest is that of a token with its probability p.
  constexpr double kLeast = 0x1p-25;  // below the least random number that is not 0
  const Value uniform =
      maximum(random_uniform(builder, shape, step, name), builder.constant(kLeast, DType::F32));
  const Value race = softmax(stop_gradient(logits), -1) / -log(uniform);
  const int last = logits.ndim() - 1;
  const Value first = less_equal(max(race, last, KeepDim::Yes), race);
  const Value none = builder.constant(static_cast<double>(shape.back()), DType::I32);
  return min(select(first, iota(builder, logits.shape(), last, DType::I32), none), last);
}

Task replaced_tokens(const ModelConfig& c, const MaskedModel& model) {
  MaskedModel of_samples = model;
  of_samples.masks_alone = true;
  Task out = masked_lm(c, of_samples, SampleParts::One);
  out.name = kPretraining;
  out.means = {
      {"mlm_loss"}, {"rtd_loss", kDiscriminatorWeight}, {"mlm_accuracy", 0}, {"rtd_accuracy", 0}};
  out.perplexity_of = {};
  out.measure = [c, model](const TaskValues& in, const Pass& pass) -> Measured {
    return replaced_token_means(c, model, in, pass);
  };
  return out;
}

std::vector<LayerStack> stacks_with_generator(const ModelConfig& c) {
  if (!has_task(c, kPretraining)) return {{"layers", c.layers}};
  return {{kGeneratorBlocks.layers, c.layers}, {"layers", c.layers}};
}

}  // namespace tessera
