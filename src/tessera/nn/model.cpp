#include "tessera/nn/model.h"

#include <array>

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
  const auto positive = [&](std::string_view name, std::int64_t value) {
    if (value < 1) out.push_back(text(name, " is ", value, "; it must be 1 or more"));
    return value >= 1;
  };
  positive("layers", c.layers);
  positive("context", c.context);
  positive("vocabulary", c.vocabulary);
  const bool heads = positive("heads", c.heads), width = positive("width", c.width);
  if (c.kv_heads < 0 || c.ffn_width < 0)
    out.push_back("kv-heads and ffn-width must not be negative");
  if (heads && width && c.width % c.heads != 0) {
    const std::int64_t below = c.width / c.heads * c.heads;
    out.push_back(text("heads ", c.heads, " do not divide the width ", c.width,
                       "; nearest widths are ", below > 0 ? text(below, " and ") : "",
                       below + c.heads));
  } else if (heads && width && c.family == "llama" && c.head_dim() % 2 != 0) {
    out.push_back(text("rotary positions need an even head width; width ", c.width, " over ",
                       c.heads, " heads gives ", c.head_dim()));
  }
  if (heads && c.kv_heads > 0 && c.heads % c.kv_heads != 0) {
    out.push_back(text("kv-heads ", c.kv_heads, " do not divide heads ", c.heads,
                       "; choose a divisor of ", c.heads));
  }
  if (!(c.dropout >= 0 && c.dropout < 1)) {
    out.push_back(text("dropout is ", c.dropout, "; it must be at least 0 and less than 1"));
  }
  return out;
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
