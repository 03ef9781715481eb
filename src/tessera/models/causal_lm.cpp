#include "tessera/models/causal_lm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/documents.h"
#include "tessera/data/streamed_text.h"
#include "tessera/models/layer.h"
#include "tessera/nn/experts.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/token_files/blended_samples.h"
#include "tessera/token_files/left_to_right.h"
#include "tessera/token_files/sampler.h"

namespace tessera {

namespace {

/// Windows of a text, drawn by a Sampler or one after another.
template <typename Windows>
class TextWindows final : public Samples {
 public:
  TextWindows(Windows windows, std::int64_t size) : windows_(std::move(windows)), size_(size) {}
  std::int64_t size() const override { return size_; }
  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    windows_.fill(first, count, batch.fill<std::int32_t>("ids"),
                  batch.fill<std::int32_t>("labels"));
  }

 private:
  Windows windows_;
  std::int64_t size_;
};

/// Samples of token files.
class TokenWindows final : public Samples {
 public:
  TokenWindows(const TokenFiles& files, const TokenSampleChoice& choice, const ModelConfig& model,
               const SampleChoices& choices)
      : samples_(files, choice, notices_), context_(model.context) {
    valid_ = choice.part != DataPart::Train;
    size_ = !valid_ ? samples_.epoch() : choices.most > 0 ? choices.most : samples_.size();
    options_ = {choices.end_of_document, model.reset_positions, model.reset_attention,
                choices.mask_end_of_document};
  }
  std::int64_t size() const override { return size_; }
  std::string notice() const override { return join(notices_, "; "); }
  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids"),
                                  labels = batch.fill<std::int32_t>("labels");
    std::vector<std::int32_t> spare(2 * static_cast<std::size_t>(context_));
    const std::span<std::int32_t> none = spare;
    std::span<std::int32_t> positions, seen;
    if (options_.reset_positions) positions = batch.fill<std::int32_t>("positions");
    if (options_.reset_attention) seen = batch.fill<std::int32_t>("first_seen");
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(context_) + 1);
    std::vector<std::uint8_t> counts(static_cast<std::size_t>(context_));
    for (std::int64_t i = 0; i < count; ++i) {
      const bool beyond = valid_ && first + i >= size_;
      if (beyond) {
        std::ranges::fill(tokens, 0);
      } else {
        const auto [dataset, number] = samples_.at(first + i);
        dataset.read(number, tokens);
      }
      const auto n = static_cast<std::size_t>(context_);
      const auto row = [&](std::span<std::int32_t> all, std::size_t of_none) {
        return all.empty() ? none.subspan(of_none, n)
                           : all.subspan(static_cast<std::size_t>(i) * n, n);
      };
      const std::span<const std::int32_t> sample(tokens);
      left_to_right(sample.first(n), options_, row(positions, 0), row(seen, n), counts);
      std::ranges::copy(sample.first(n), row(ids, 0).begin());
      for (std::size_t t = 0; t < n; ++t)
        row(labels, 0)[t] = beyond || counts[t] == 0 ? kIgnoredLabel : sample[t + 1];
    }
  }

 private:
  std::vector<std::string> notices_;
  TokenSamples samples_;
  std::int64_t context_ = 0, size_ = 0;
  LeftToRightOptions options_;
  bool valid_ = false;
};

std::unique_ptr<Samples> token_windows(const Dataset& data, DataPart part,
                                       const ModelConfig& config, const SampleChoices& choices) {
  TokenSampleChoice choice{
      part, config.context, config.vocabulary, {}, static_cast<std::uint32_t>(choices.seed)};
  if (choices.in_all > 0) choice.samples = choices.in_all;
  return std::make_unique<TokenWindows>(*data.token_files(), choice, config, choices);
}

std::unique_ptr<Samples> packed(const Dataset& data, DataPart part, const ModelConfig& config,
                                const SampleChoices& choices) {
  require(choices.order == SampleOrder::ShuffledWindows, "sample-order ", to_text(choices.order),
          " needs joined documents; give packing wrapped, or sample-order ",
          to_text(SampleOrder::ShuffledWindows));
  return document_samples(data, part,
                          {.context = config.context,
                           .packing = choices.packing,
                           .seed = choices.seed,
                           .buckets = choices.buckets,
                           .most = choices.most,
                           .positions = config.reset_positions,
                           .first_seen = config.reset_attention});
}

/// Which tokens each one sees, beside those behind it, which it never does: those of its document,
/// and no padding. [b, s] or [b, s, s] of bool; empty: all.
Value seen_of(Value ids, const Pass& pass) {
  Builder& builder = ids.builder();
  const std::int64_t b = ids.shape()[0], s = ids.shape()[1];
  Value tokens, same_document;
  if (pass.mask.valid()) tokens = not_equal(pass.mask, builder.constant(0, DType::I32));
  if (!pass.first_seen.valid()) return tokens;
  const Value keys = iota(builder, {b, s, s}, 2, DType::I32);
  same_document = less_equal(broadcast_to(reshape(pass.first_seen, {b, s, 1}), {b, s, s}), keys);
  if (!tokens.valid()) return same_document;
  return logical_and(same_document, broadcast_to(reshape(tokens, {b, 1, s}), {b, s, s}));
}

constexpr const char* kTextLossMean = "lm_loss";

/// What routers add to the loss; empty: the model has no experts.
std::vector<TaskMean> router_means(const ModelConfig& c) {
  if (!has_experts(c)) return {};
  std::vector<TaskMean> out = {{"aux_loss", c.experts.balance}, {"z_loss", c.experts.z_loss}};
  if (c.experts.capacity > 0) out.push_back({kDroppedMean, 0});
  return out;
}

/// The sum over layers, which measure the same batch.
Mean sum_of_means(const std::vector<Mean>& means) {
  std::vector<Value> sums;
  for (const Mean& mean : means) sums.push_back(mean.sum);
  return {add_n(sums), means.front().count};
}

void add_routing(Measured& to, const Routing& routing) {
  to.means.push_back(sum_of_means(routing.balance));
  to.means.push_back(sum_of_means(routing.z_loss));
  if (!routing.dropped.empty()) {
    Mean dropped = sum_of_means(routing.dropped);
    dropped.count = dropped.count * static_cast<double>(routing.dropped.size());  // of all layers
    to.means.push_back(dropped);
  }
  for (const RouterBias& bias : routing.biases)
    to.buffers.push_back({bias.bias, [bias] { return bias.next(); }});
  to.tokens_per_expert = routing.tokens;
}

bool are_packed(const Dataset& data, const SampleChoices& choices) {
  return data.has_rows() && choices.packing != Packing::Wrapped;
}

}  // namespace

Task causal_lm(const ModelConfig& config, LogitsFunction logits) {
  const std::int64_t context = config.context;
  Task out;
  out.name = kCausalLm;
  out.inputs = {{"ids", DType::I32, {context}, config.vocabulary},
                {"labels", DType::I32, {context}, config.vocabulary, /*ignorable=*/true}};
  if (config.reset_positions) out.inputs.push_back({"positions", DType::I32, {context}, context});
  if (config.reset_attention) out.inputs.push_back({"first_seen", DType::I32, {context}, context});
  out.tokens = context;
  const std::vector<TaskMean> of_routers = router_means(config);
  out.means = {{of_routers.empty() ? kLossMean : kTextLossMean}};
  out.perplexity_of = of_routers.empty() ? kLossMean : kTextLossMean;
  out.means.insert(out.means.end(), of_routers.begin(), of_routers.end());
  for (std::int64_t i = 0; !of_routers.empty() && i < config.layers; ++i)
    out.routers += has_experts(config, i) ? 1 : 0;
  out.token_files = {[context](const TokenFiles& files, const SampleChoices&) {
                       return files.samples_in_epoch(DataPart::Train, context);
                     },
                     [context](const TokenFiles& files, const SampleChoices& choices) {
                       return files.order_text(DataPart::Train, context, choices.in_all);
                     }};
  out.packs_documents = true;
  out.text = {.context = context, .logits = [config, logits](Value ids, const Pass& pass) {
                return logits(config, ids, pass);
              }};
  out.measure = [next = out.text->logits, routers = out.routers](const TaskValues& in,
                                                                 const Pass& pass) -> Measured {
    Pass of_documents = pass;
    Routing routing;
    if (routers > 0) of_documents.routing = &routing;
    // A validation's last batch is filled up with samples of which no label counts.
    if (routers > 0 && !pass.step.valid())
      routing.counted = max(counted_labels(in.at("labels")), {1});
    if (const auto at = in.find("positions"); at != in.end()) of_documents.positions = at->second;
    if (const auto at = in.find("first_seen"); at != in.end()) of_documents.first_seen = at->second;
    if (const auto at = in.find("mask"); at != in.end()) of_documents.mask = at->second;
    Measured measured(
        std::vector{cross_entropy_mean(next(in.at("ids"), of_documents), in.at("labels"))});
    if (routers > 0) add_routing(measured, routing);
    return measured;
  };
  out.train_samples = [config, context](const Dataset& data,
                                        const SampleChoices& choices) -> std::unique_ptr<Samples> {
    if (data.token_files() != nullptr) return token_windows(data, DataPart::Train, config, choices);
    if (data.stream() != nullptr)
      return streamed_samples(data.texts().stream, context, config.vocabulary);
    if (are_packed(data, choices)) return packed(data, DataPart::Train, config, choices);
    const Sampler windows(data.texts().tokens.train(), {context, choices.seed, choices.order});
    return std::make_unique<TextWindows<Sampler>>(windows, windows.windows_per_epoch());
  };
  out.valid_samples = [config, context](const Dataset& data,
                                        const SampleChoices& choices) -> std::unique_ptr<Samples> {
    if (data.token_files() != nullptr) return token_windows(data, DataPart::Valid, config, choices);
    if (are_packed(data, choices)) return packed(data, DataPart::Valid, config, choices);
    std::span<const std::int32_t> tokens = data.texts().tokens.held_out();
    if (choices.most > 0) {
      const std::int64_t labels = size_product({choices.most, context}, "tokens of a validation");
      tokens = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(labels) + 1));
    }
    const EvalWindows windows(tokens, context);
    return std::make_unique<TextWindows<EvalWindows>>(windows, windows.count());
  };
  return out;
}

Task causal_lm(const ModelConfig& config) {
  ModelConfig own = config;
  // Only distances count between rotary positions, and with slopes.
  if (config.family->layer.rotary || config.family->slopes) own.reset_positions = false;
  return causal_lm(own, [](const ModelConfig& c, Value ids, const Pass& pass) -> Value {
    return causal_transformer(c, layer_of(c), ids, pass);
  });
}

namespace {

/// Where each token of a text stands. A family whose table has rows for none counts seen tokens
/// alone: those that a mask hides have row -1, the last of the unread ones.
Value positions_of(const ModelConfig& c, const Pass& pass) {
  if (pass.positions.valid() || !pass.mask.valid() || c.family->unread_positions == 0)
    return pass.positions;
  Builder& builder = pass.mask.builder();
  const std::int64_t s = pass.mask.shape()[1];
  const Value seen = cast(pass.mask, DType::F32);  // [b, s]
  const Value upto =
      cast(less_equal(iota(builder, {s, s}, 0, DType::I32), iota(builder, {s, s}, 1, DType::I32)),
           DType::F32);
  return cast(matmul(seen, upto) * seen, DType::I32) - builder.constant(1, DType::I32);
}

}  // namespace

CausalRows causal_rows(const ModelConfig& c, TransformerLayer layer, Value ids, const Pass& pass) {
  Builder& builder = ids.builder();
  const WeightInit init = init_of(c);
  layer.residual_init = residual_init(init, 2 * c.layers);
  Value x, token;
  {
    const Scope scope(builder, "embed");
    const EmbeddingResult embedded = embedding(ids, "token", c.vocabulary, c.width, init);
    token = embedded.table;
    x = embedded.rows;
    if (c.family->scaled_table) x = x * std::sqrt(static_cast<double>(c.width));
    if (c.family->table_norm) x = norm(x, "norm", layer);
    if (!layer.rotary && !c.family->slopes)
      x = learned_positions(x, "position", c.most_positions(), init, pass.position,
                            positions_of(c, pass), c.family->unread_positions);
    x = dropout_layer(x, c.dropout, pass.step, "dropout");
    builder.set_name(x, "residual");
  }
  Visible visible{.causal = true, .mask = seen_of(ids, pass)};
  if (c.family->slopes)
    visible.slopes = alibi_slopes(builder, layer.groups(), layer.heads / layer.groups());
  const std::int64_t usual = c.layers - (c.family->query_layer ? 1 : 0);
  for (std::int64_t i = 0; i < usual; ++i) {
    const Scope scope(builder, text("layers.", i));
    x = encoder_layer(x, layer_at(layer, c, i), visible, pass);
  }
  if (usual == c.layers) {
    if (pass.wanted.valid()) x = dynamic_slice(x, 1, pass.wanted, 1);
    return {norm(x, "norm", layer), token};
  }
  x = norm(x, "norm", layer);
  const Scope scope(builder, text("layers.", usual));
  const Value none = broadcast_to(builder.constant(0, x.dtype()), x.shape());
  const Value queries = learned_positions(none, "query", c.most_positions(), init, pass.position,
                                          pass.positions);  // [b, s, width]
  x = query_layer(queries, x, layer_at(layer, c, usual), visible, pass);
  if (pass.wanted.valid()) x = dynamic_slice(x, 1, pass.wanted, 1);
  return {x, token};
}

Value causal_transformer(const ModelConfig& c, TransformerLayer layer, Value ids,
                         const Pass& pass) {
  const auto [x, token] = causal_rows(c, layer, ids, pass);
  Value out;
  if (c.tied_head) {
    const Scope scope(ids.builder(), "head");
    out = matmul(x, token, {.trans_b = true});
    if (c.family->head_bias) {
      const Shape shape{c.vocabulary};
      out = out + ids.builder().state("bias", {DType::F32, shape, {}}, Role::Parameter,
                                      zeros_init().of(shape));
    }
  } else {
    out = linear(x, "head", c.vocabulary, {c.family->head_bias, init_of(c)});
  }
  const bool capped = c.logit_cap > 0 && reads_field(c, "logit-cap");
  return capped ? tanh(out / c.logit_cap) * c.logit_cap : out;
}

std::optional<std::int32_t> end_padding(const Vocabulary& vocabulary) {
  const Tokenizer* const made = vocabulary.made_elsewhere();
  if (made == nullptr) return {};
  const SpecialTokens& has = made->special_tokens();
  return has.pad ? has.pad : has.eos;
}

namespace {

/// Of texts [b, s, width]; where there is a mask, tokens see no padding.
Value text_rows(const ModelConfig& c, const TaskValues& in, const Pass& pass) {
  Pass of_texts = pass;
  if (const auto at = in.find("mask"); at != in.end()) of_texts.mask = at->second;
  return causal_rows(c, layer_of(c), in.at("ids"), of_texts).rows;
}

}  // namespace

TextClassifier causal_classifier(const ModelConfig& c) {
  TextClassifier out{.last = true};
  out.logits = [c](const TaskValues& in, const Pass& pass) -> Value {
    const Value x = text_rows(c, in, pass), last = in.at("last");
    const std::int64_t batch = x.shape()[0];
    const Value rows = reshape(rows_at(x, reshape(last, {batch, 1})), {batch, c.width});
    return linear(rows, "score", class_count(c), {false, init_of(c)});
  };
  out.frame = [](const Vocabulary& vocabulary) -> SampleFrame {
    const Tokenizer* const made = vocabulary.made_elsewhere();
    if (made == nullptr) return {};
    const std::optional<std::int32_t> pad = end_padding(vocabulary);
    return {made->frame(), pad.value_or(0), pad};
  };
  return out;
}

Task causal_token_classification(const ModelConfig& c) {
  TextClassifier classifier = causal_classifier(c);
  classifier.last = false;
  classifier.logits = [c](const TaskValues& in, const Pass& pass) {
    const Value rows =
        dropout_layer(text_rows(c, in, pass), classifier_dropout(c), pass.step, "score.dropout");
    return linear(rows, "score", class_count(c), {true, init_of(c)});
  };
  return token_classification(c, classifier);
}

}  // namespace tessera
