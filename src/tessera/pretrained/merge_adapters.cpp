#include "tessera/pretrained/merge_adapters.h"

#include "tessera/base/text.h"
#include "tessera/nn/lora.h"
#include "tessera/pretrained/hub/hub_rows.h"

namespace tessera {

namespace {

std::vector<float> whole(const ParameterReader& from, const std::string& name) {
  std::vector<float> out(static_cast<std::size_t>(from.find(name)->numel()));
  from.read(name, out);
  return out;
}

/// Adds an adapter to rows of a weight: those that lie `offset` behind the beginning of each group
/// of `group`, `rows` of them.
void add_adapter(const ParameterReader& from, const std::string& block, double scale,
                 std::int64_t group, std::int64_t offset, std::int64_t rows,
                 std::span<float> weight) {
  const Shape& a_shape = *from.find(block + ".lora_a");
  const std::int64_t rank = a_shape[0], in = a_shape[1];
  const std::vector<float> a = whole(from, block + ".lora_a"), b = whole(from, block + ".lora_b");
  std::vector<double> sums(static_cast<std::size_t>(in));
  for (std::int64_t row = 0; row < std::ssize(b) / rank; ++row) {
    std::ranges::fill(sums, 0);
    for (std::int64_t k = 0; k < rank; ++k) {
      const double factor =
          scale * static_cast<double>(b[static_cast<std::size_t>(row * rank + k)]);
      const float* line = a.data() + k * in;
      for (std::int64_t i = 0; i < in; ++i)
        sums[static_cast<std::size_t>(i)] += factor * static_cast<double>(line[i]);
    }
    const std::int64_t ours = row / rows * group + offset + row % rows;
    float* const to = weight.data() + ours * in;
    for (std::int64_t i = 0; i < in; ++i)
      to[i] = static_cast<float>(static_cast<double>(to[i]) + sums[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

ModelConfig without_adapters(ModelConfig model) {
  model.lora = {};
  return model;
}

ParameterReader merged(const ModelConfig& model, const ParameterReader& from) {
  const auto read = [model, from](std::string_view name, std::span<float> out) {
    from.read(name, out);
    constexpr std::string_view kWeight = ".weight";
    if (!name.ends_with(kWeight)) return;
    const std::string block(name.substr(0, name.size() - kWeight.size()));
    const double scale = model.lora.scale();
    const std::int64_t all = (*from.find(name))[0];
    if (from.find(block + ".lora_a") != nullptr) add_adapter(from, block, scale, all, 0, all, out);
    const ModelConfig stack = of_stack(model, name);
    const std::vector<RowPart> parts = joined_rows(block.substr(block.rfind('.') + 1),
                                                   stack.heads / stack.groups(), stack.head_dim());
    std::int64_t group = 0, offset = 0;
    for (const RowPart& part : parts) group += part.rows;
    for (const RowPart& part : parts) {
      const std::string of_part = text(block, ".", part.name);
      if (from.find(of_part + ".lora_a") != nullptr)
        add_adapter(from, of_part, scale, group, offset, part.rows, out);
      offset += part.rows;
    }
  };
  return {from.find, read};
}

}  // namespace tessera
