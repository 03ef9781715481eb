#include "tessera/pretrained/merge_adapters.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

/// Rows of a weight: those that lie `offset` behind the beginning of each group of `group`, `rows`
/// of them.
struct RowsInGroups {
  std::int64_t group = 0, offset = 0, rows = 0;
  std::int64_t of_weight(std::int64_t row) const {
    return row / rows * group + offset + row % rows;
  }
};

double length_of(const float* row, std::int64_t in) {
  double squares = 0;
  for (std::int64_t i = 0; i < in; ++i)
    squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  return std::sqrt(squares);
}

/// Adds an adapter to rows of a weight.
void add_adapter(const ParameterReader& from, const std::string& block, double scale,
                 const RowsInGroups& rows, std::span<float> weight) {
  const Shape& a_shape = *from.find(block + ".lora_a");
  const std::int64_t rank = a_shape[0], in = a_shape[1];
  const std::vector<float> a = whole(from, block + ".lora_a"), b = whole(from, block + ".lora_b");
  const std::string magnitude = text(block, kLoraMagnitude);
  const std::vector<float> longer =
      from.find(magnitude) == nullptr ? std::vector<float>() : whole(from, magnitude);
  std::vector<double> sums(static_cast<std::size_t>(in));
  for (std::int64_t row = 0; row < std::ssize(b) / rank; ++row) {
    float* const to = weight.data() + rows.of_weight(row) * in;
    std::copy_n(to, in, sums.begin());
    for (std::int64_t k = 0; k < rank; ++k) {
      const double factor =
          scale * static_cast<double>(b[static_cast<std::size_t>(row * rank + k)]);
      const float* line = a.data() + k * in;
      for (std::int64_t i = 0; i < in; ++i)
        sums[static_cast<std::size_t>(i)] += factor * static_cast<double>(line[i]);
    }
    double length = 1;  // also of a row of zeros
    if (!longer.empty()) {
      const double now = std::sqrt(std::inner_product(sums.begin(), sums.end(), sums.begin(), 0.0));
      const double wanted =
          length_of(to, in) + static_cast<double>(longer[static_cast<std::size_t>(row)]);
      if (now > 0) length = wanted / now;
    }
    for (std::int64_t i = 0; i < in; ++i)
      to[i] = static_cast<float>(length * sums[static_cast<std::size_t>(i)]);
  }
}

/// Of an adapter of the block "layers.0.attn.qkv" or of its part "layers.0.attn.qkv.q": the block of
/// the weight, and the rows that it changes.
struct AdaptedWeight {
  std::string block;
  RowsInGroups rows;
};

std::vector<RowPart> parts_of(const ModelConfig& model, const std::string& block) {
  const ModelConfig stack = of_stack(model, text(block, ".weight"));
  return joined_rows(block.substr(block.rfind('.') + 1), stack.heads / stack.groups(),
                     stack.head_dim());
}

RowsInGroups rows_of_part(const std::vector<RowPart>& parts, std::string_view name) {
  RowsInGroups out;
  for (const RowPart& part : parts) {
    if (part.name == name) out.offset = out.group, out.rows = part.rows;
    out.group += part.rows;
  }
  return out;
}

AdaptedWeight adapted_weight(const ModelConfig& model, const ParameterReader& from,
                             const std::string& adapter) {
  const auto whole_rows = from.find(adapter + ".weight");
  if (whole_rows != nullptr) return {adapter, {(*whole_rows)[0], 0, (*whole_rows)[0]}};
  const std::size_t dot = adapter.rfind('.');
  const std::string block = adapter.substr(0, dot);
  return {block, rows_of_part(parts_of(model, block), adapter.substr(dot + 1))};
}

}  // namespace

ModelConfig without_adapters(ModelConfig model) {
  model.lora = {};
  return model;
}

std::vector<double> row_lengths(const ModelConfig& model, const ParameterReader& from,
                                std::string_view magnitude) {
  const std::string adapter(magnitude.substr(0, magnitude.size() - kLoraMagnitude.size()));
  const AdaptedWeight at = adapted_weight(model, from, adapter);
  const std::int64_t in = (*from.find(at.block + ".weight"))[1];
  const std::vector<float> weight = whole(from, at.block + ".weight");
  std::vector<double> out(static_cast<std::size_t>((*from.find(magnitude))[0]));
  for (std::size_t row = 0; row < out.size(); ++row)
    out[row] =
        length_of(weight.data() + at.rows.of_weight(static_cast<std::int64_t>(row)) * in, in);
  return out;
}

ParameterReader with_lengths(const ModelConfig& model, const ParameterReader& from) {
  return {from.find, [model, from](std::string_view name, std::span<float> out) {
            from.read(name, out);
            if (!name.ends_with(kLoraMagnitude)) return;
            const std::vector<double> lengths = row_lengths(model, from, name);
            for (std::size_t i = 0; i < out.size(); ++i)
              out[i] = static_cast<float>(static_cast<double>(out[i]) + lengths[i]);
          }};
}

ParameterReader merged(const ModelConfig& model, const ParameterReader& from) {
  const auto read = [model, from](std::string_view name, std::span<float> out) {
    from.read(name, out);
    constexpr std::string_view kWeight = ".weight";
    if (!name.ends_with(kWeight)) return;
    const std::string block(name.substr(0, name.size() - kWeight.size()));
    const double scale = model.lora.scale();
    const std::int64_t all = (*from.find(name))[0];
    if (from.find(block + ".lora_a") != nullptr)
      add_adapter(from, block, scale, {all, 0, all}, out);
    const std::vector<RowPart> parts = parts_of(model, block);
    for (const RowPart& part : parts) {
      const std::string of_part = text(block, ".", part.name);
      if (from.find(of_part + ".lora_a") != nullptr)
        add_adapter(from, of_part, scale, rows_of_part(parts, part.name), out);
    }
  };
  return {from.find, read};
}

}  // namespace tessera
