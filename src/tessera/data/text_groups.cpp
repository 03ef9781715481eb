#include "tessera/data/text_groups.h"

#include <algorithm>
#include <string>

#include "tessera/data/row_order.h"

namespace tessera {

namespace {

/// Tokens of the longest text of a row within the frame, uncut.
std::int64_t group_length(const Texts& texts, const TextFrame& frame, std::int64_t row) {
  std::int64_t out = 0;
  for (std::int64_t column = 0; column < texts.rows.columns; ++column)
    out = std::max(out, std::ssize(texts.rows.text(texts.tokens.all(), row, column)));
  return out + frame.around(1);
}

class TextGroups final : public Samples {
 public:
  TextGroups(const Dataset& data, DataPart part, const TextGroupsOptions& options)
      : texts_(data.texts()),
        options_(options),
        order_(texts_, part,
               {.context = options.context,
                .around = options.frame.around(1),
                .seed = options.seed,
                .most = options.most,
                .buckets = options.buckets},
               [&](std::int64_t row) { return group_length(texts_, options.frame, row); }) {}

  std::int64_t size() const override { return order_.size(); }
  std::int64_t bucket_length(std::int64_t first) const override {
    return order_.bucket_length(first);
  }
  std::string notice() const override { return order_.notice(); }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill_with<std::int32_t>("ids", options_.pad),
                                  mask = batch.fill_with<std::int32_t>("mask", 0);
    std::span<std::int32_t> types;
    if (options_.types) types = batch.fill_with<std::int32_t>("types", 0);
    const std::int64_t columns = texts_.rows.columns;
    const std::int64_t width = std::ssize(ids) / (count * columns);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = order_.row(first + i);
      for (std::int64_t column = 0; row >= 0 && column < columns; ++column) {
        const std::span<const std::int32_t> tokens =
            texts_.rows.text(texts_.tokens.all(), row, column);
        const FramedTexts one = framed(options_.frame, std::span(&tokens, 1), width);
        const auto at = static_cast<std::size_t>((i * columns + column) * width);
        std::ranges::copy(one.ids, ids.subspan(at).begin());
        std::ranges::fill(mask.subspan(at, one.ids.size()), 1);
        if (options_.types) std::ranges::copy(one.types, types.subspan(at).begin());
      }
    }
  }

 private:
  const Texts& texts_;
  TextGroupsOptions options_;
  RowOrder order_;
};

}  // namespace

std::unique_ptr<Samples> text_groups(const Dataset& data, DataPart part,
                                     const TextGroupsOptions& options) {
  return std::make_unique<TextGroups>(data, part, options);
}

std::int64_t longest_of_groups(const Dataset& data, const TextFrame& frame) {
  std::int64_t out = 0;
  for (std::int64_t row = 0; row < data.texts().rows.rows(); ++row)
    out = std::max(out, group_length(data.texts(), frame, row));
  return out;
}

}  // namespace tessera
