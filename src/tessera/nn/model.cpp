#include "tessera/nn/model.h"

#include <array>

#include "tessera/base/size.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/softmax.h"

namespace tessera {

namespace {

constexpr std::array<ModelFamily, 2> kFamilies = {{
    {"gpt2", gpt2, "pre-norm, learned positions, GELU, tied head"},
    {"llama", llama, "RMS norm, rotary positions, SwiGLU, grouped queries"},
}};

constexpr std::int64_t kIgnore = -100;  // a label that does not count

/// A bound above the parameters; a check that does not pass names what is too large.
void check_weight_sizes(const ModelConfig& c) {
  constexpr std::int64_t kBytes = 16;  // of an f32 weight with its gradient and two moments
  const std::string_view all = "bytes of all weights with gradients and moments";
  std::int64_t sum = size_product({c.layers, 4, c.width, c.width, kBytes},
                                  "bytes of attention (layers x 4 x width x width x 16)");
  const auto add = [&](std::initializer_list<std::int64_t> factors, std::string_view what) {
    sum = size_sum(sum, size_product(factors, what), all);
  };
  add({c.layers, 3, c.width, c.hidden(), kBytes},
      "bytes of feed-forward layers (layers x 3 x width x ffn-width x 16)");
  add({2, c.vocabulary, c.width, kBytes},
      "bytes of embedding and head (2 x vocabulary x width x 16)");
  add({c.context, c.width, kBytes}, "bytes of positions (context x width x 16)");
}

}  // namespace

std::span<const ModelFamily> model_families() { return kFamilies; }

const ModelFamily& find_model(std::string_view family) {
  std::vector<std::string> names;
  for (const ModelFamily& known : kFamilies) {
    if (known.name == family) return known;
    names.emplace_back(known.name);
  }
  fail(Fault::Usage, "unknown model family '", family, "'; known are ", join(names));
}

std::vector<std::string> problems(const ModelConfig& c) {
  std::vector<std::string> out;
  const auto positive = [&](std::string_view name, std::int64_t value,
                            std::int64_t most = kMaxFieldSize) {
    if (value < 1) out.push_back(text(name, " is ", value, "; it must be 1 or more"));
    if (value > most) out.push_back(text(name, " is ", value, "; it must be at most ", most));
    return value >= 1 && value <= most;
  };
  positive("layers", c.layers, kMaxLayers);
  positive("context", c.context);
  positive("vocabulary", c.vocabulary);
  const bool heads = positive("heads", c.heads), width = positive("width", c.width);
  for (const auto& [name, value] :
       {std::pair("kv-heads", c.kv_heads), {"ffn-width", c.ffn_width}}) {
    if (value < 0) out.push_back(text(name, " is ", value, "; it must not be negative"));
    if (value > 0) positive(name, value);
  }
  if (heads && width && c.heads > c.width) {
    out.push_back(text("heads ", c.heads, " are more than the width ", c.width,
                       "; choose heads that divide the width"));
  } else if (heads && width && c.width % c.heads != 0) {
    const std::int64_t below = c.width / c.heads * c.heads;
    out.push_back(text("heads ", c.heads, " do not divide the width ", c.width,
                       "; nearest widths are ", below, " and ", below + c.heads));
  } else if (heads && width && c.family == "llama" && c.head_dim() % 2 != 0) {
    out.push_back(text("rotary positions need an even head width; width ", c.width, " over ",
                       c.heads, " heads gives ", c.head_dim()));
  }
  if (heads && c.kv_heads > 0 && c.kv_heads <= kMaxFieldSize && c.heads % c.kv_heads != 0) {
    out.push_back(text("kv-heads ", c.kv_heads, " do not divide heads ", c.heads,
                       "; choose a divisor of ", c.heads));
  }
  if (!(c.dropout >= 0 && c.dropout < 1)) {
    out.push_back(text("dropout is ", c.dropout, "; it must be at least 0 and less than 1"));
  }
  if (!out.empty()) return out;
  try {
    check_weight_sizes(c);
    check_step_sizes(c, 1);
  } catch (const Error& error) {
    out.emplace_back(error.what());
  }
  return out;
}

void check_step_sizes(const ModelConfig& c, std::int64_t batch) {
  constexpr std::int64_t kBytes = 4;
  size_product({batch, c.context, c.vocabulary, kBytes},
               "bytes of logits (samples x context x vocabulary x 4)");
  size_product({batch, c.context, c.hidden(), kBytes},
               "bytes of the feed-forward layer (samples x context x ffn-width x 4)");
  size_product({c.layers, batch, c.context, 3, c.width, kBytes},
               "bytes for the backward pass (layers x samples x context x 3 x width x 4)");
}

Loss token_loss(Value logits, Value labels) {
  const Scope scope(logits.builder(), "loss");
  const Value ignore = cast(logits.builder().constant(kIgnore, DType::I32), labels.dtype());
  const Value count = maximum(sum_all(cast(not_equal(labels, ignore), DType::F32)),
                              logits.builder().constant(1.0, DType::F32));
  const Value sum = sum_all(cross_entropy(logits, labels, kIgnore).loss);
  return {sum / count, sum, count};
}

}  // namespace tessera
