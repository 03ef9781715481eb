#include "tessera/models/causal_lm.h"

#include <algorithm>
#include <utility>

#include "tessera/base/size.h"
#include "tessera/data/sampler.h"
#include "tessera/models/layer.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/shape_ops.h"

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

}  // namespace

Task causal_lm(const ModelConfig& config, LogitsFunction logits) {
  const std::int64_t context = config.context;
  Task out;
  out.name = "causal-lm";
  out.inputs = {{"ids", DType::I32, {context}, config.vocabulary},
                {"labels", DType::I32, {context}, config.vocabulary, /*ignorable=*/true}};
  out.tokens = context;
  out.means = {{kLossMean}};
  out.text = {.context = context, .logits = [config, logits](Value ids, const Pass& pass) {
                return logits(config, ids, pass);
              }};
  out.measure = [next = out.text->logits](const TaskValues& in,
                                          const Pass& pass) -> std::vector<Mean> {
    return {cross_entropy_mean(next(in.at("ids"), pass), in.at("labels"))};
  };
  out.train_samples = [context](const Dataset& data, const SampleChoices& choices) {
    const Sampler windows(data.tokens.train(), {context, choices.seed, choices.order});
    return std::make_unique<TextWindows<Sampler>>(windows, windows.windows_per_epoch());
  };
  out.valid_samples = [context](const Dataset& data, const SampleChoices& choices) {
    std::span<const std::int32_t> tokens = data.tokens.held_out();
    if (choices.most > 0) {
      const std::int64_t labels = size_product({choices.most, context}, "tokens of a validation");
      tokens = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(labels) + 1));
    }
    const EvalWindows windows(tokens, context);
    return std::make_unique<TextWindows<EvalWindows>>(windows, windows.count());
  };
  return out;
}

Value causal_transformer(const ModelConfig& c, TransformerLayer layer, Value ids,
                         const Pass& pass) {
  Builder& builder = ids.builder();
  const WeightInit init = init_of(c);
  layer.residual_init = residual_init(init, 2 * c.layers);
  Value x, token;
  {
    const Scope scope(builder, "embed");
    const EmbeddingResult embedded = embedding(ids, "token", c.vocabulary, c.width, init);
    token = embedded.table;
    x = embedded.rows;
    if (!layer.rotary)
      x = learned_positions(x, "position", c.most_positions(), init, pass.position);
    x = dropout_layer(x, c.dropout, pass.step, "dropout");
    builder.set_name(x, "residual");
  }
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope scope(builder, text("layers.", i));
    x = encoder_layer(x, layer, {.causal = true}, pass);
  }
  if (pass.wanted.valid()) x = dynamic_slice(x, 1, pass.wanted, 1);
  x = norm(x, "norm", layer);
  if (c.tied_head) {
    const Scope scope(builder, "head");
    return matmul(x, token, {.trans_b = true});
  }
  return linear(x, "head", c.vocabulary, {false, init});
}

}  // namespace tessera
