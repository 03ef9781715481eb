#include "tessera/data/text_groups.h"

#include <algorithm>
#include <array>
#include <string>

#include "tessera/data/row_order.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

std::span<const std::int32_t> text_of(const Texts& texts, std::int64_t row, std::int64_t column) {
  return texts.rows.text(texts.tokens.all(), row, column);
}

/// Tokens of the longest text, or pair, of a row within the frame, uncut.
std::int64_t group_length(const Texts& texts, const TextFrame& frame, bool pairs,
                          std::int64_t row) {
  std::int64_t out = 0;
  for (std::int64_t column = pairs ? 1 : 0; column < texts.rows.columns; ++column)
    out = std::max(out, std::ssize(text_of(texts, row, column)));
  return out + frame.around(pairs ? 2 : 1) + (pairs ? std::ssize(text_of(texts, row, 0)) : 0);
}

class TextGroups final : public Samples {
 public:
  TextGroups(const Dataset& data, DataPart part, const TextGroupsOptions& options)
      : texts_(data.texts()),
        options_(options),
        order_(texts_, part,
               {.context = options.context,
                .around = options.frame.around(options.pairs ? 2 : 1),
                .seed = options.seed,
                .most = options.most,
                .buckets = options.buckets},
               [&](std::int64_t row) {
                 return group_length(texts_, options.frame, options.pairs, row);
               }) {}

  std::int64_t size() const override { return order_.size(); }
  std::int64_t bucket_length(std::int64_t first) const override {
    return order_.bucket_length(first);
  }
  std::string notice() const override { return order_.notice(); }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill_with<std::int32_t>("ids", options_.pad),
                                  mask = batch.fill_with<std::int32_t>("mask", 0);
    std::span<std::int32_t> types, labels;
    if (options_.types) types = batch.fill_with<std::int32_t>("types", 0);
    if (options_.pairs) labels = batch.fill_with<std::int32_t>("labels", kIgnoredLabel);
    const std::int64_t width = std::ssize(ids) / (count * options_.texts);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = order_.row(first + i);
      if (row < 0) continue;
      for (std::int64_t text = 0; text < texts_in(row); ++text) {
        const FramedTexts one = framed_text(row, text, width);
        const auto at = static_cast<std::size_t>((i * options_.texts + text) * width);
        std::ranges::copy(one.ids, ids.subspan(at).begin());
        std::ranges::fill(mask.subspan(at, one.ids.size()), 1);
        if (options_.types) std::ranges::copy(one.types, types.subspan(at).begin());
      }
      if (options_.pairs)
        labels[static_cast<std::size_t>(i)] = texts_.labels[static_cast<std::size_t>(row)].number();
    }
  }

 private:
  /// So many texts, or pairs, has a row.
  std::int64_t texts_in(std::int64_t row) const {
    if (!options_.pairs) return options_.texts;
    std::int64_t out = std::min(options_.texts, texts_.rows.columns - 1);
    while (out > 0 && text_of(texts_, row, out).empty()) --out;
    return out;
  }
  FramedTexts framed_text(std::int64_t row, std::int64_t text, std::int64_t width) const {
    const std::array both = {text_of(texts_, row, 0),
                             text_of(texts_, row, text + (options_.pairs ? 1 : 0))};
    return framed(options_.frame, std::span(both).subspan(options_.pairs ? 0 : 1), width);
  }

  const Texts& texts_;
  TextGroupsOptions options_;
  RowOrder order_;
};

}  // namespace

std::unique_ptr<Samples> text_groups(const Dataset& data, DataPart part,
                                     const TextGroupsOptions& options) {
  return std::make_unique<TextGroups>(data, part, options);
}

std::int64_t longest_of_groups(const Dataset& data, const TextFrame& frame, bool pairs) {
  std::int64_t out = 0;
  for (std::int64_t row = 0; row < data.texts().rows.rows(); ++row)
    out = std::max(out, group_length(data.texts(), frame, pairs, row));
  return out;
}

}  // namespace tessera
