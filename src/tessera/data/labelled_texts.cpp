#include "tessera/data/labelled_texts.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"
#include "tessera/data/row_order.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

/// Tokens of a row as a sample, uncut.
std::int64_t sample_length(const Dataset& data, const TextFrame& frame, std::int64_t row) {
  const Texts& texts = data.texts();
  std::int64_t out = frame.around(static_cast<std::size_t>(texts.rows.columns));
  for (std::int64_t column = 0; column < texts.rows.columns; ++column)
    out += std::ssize(texts.rows.text(texts.tokens.all(), row, column));
  return out;
}

class LabelledTexts final : public Samples {
 public:
  LabelledTexts(const Dataset& data, DataPart part, const LabelledTextsOptions& options)
      : texts_(data.texts()),
        options_(options),
        unlabelled_(options.frame),
        order_(texts_, part,
               {.context = options.context,
                .around = options.frame.around(static_cast<std::size_t>(texts_.rows.columns)),
                .seed = options.seed,
                .most = options.most,
                .buckets = options.buckets},
               [&](std::int64_t row) { return sample_length(data, options.frame, row); }) {
    check(std::ssize(texts_.labels) == texts_.rows.rows(), "labels of rows");
    for (std::vector<FramePart>* parts : {&unlabelled_.single, &unlabelled_.pair}) {
      for (FramePart& part : *parts) part.id = kIgnoredLabel;
    }
  }

  std::int64_t size() const override { return order_.size(); }

  std::int64_t bucket_length(std::int64_t first) const override {
    return order_.bucket_length(first);
  }

  std::string notice() const override { return order_.notice(); }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill_with<std::int32_t>("ids", options_.pad);
    std::span<std::int32_t> types, mask, last;
    if (options_.types) types = batch.fill_with<std::int32_t>("types", 0);
    if (options_.mask) mask = batch.fill_with<std::int32_t>("mask", 0);
    if (options_.last) last = batch.fill_with<std::int32_t>("last", 0);
    const std::int64_t width = std::ssize(ids) / count;  // the context, or the length of a bucket
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = order_.row(first + i);
      if (row < 0) continue;
      const FramedTexts sample = sample_of(row, width);
      const auto at = static_cast<std::size_t>(i * width);
      std::ranges::copy(sample.ids, ids.subspan(at).begin());
      if (options_.types) std::ranges::copy(sample.types, types.subspan(at).begin());
      if (options_.mask) std::ranges::fill(mask.subspan(at, sample.ids.size()), 1);
      if (options_.last) last[static_cast<std::size_t>(i)] = last_of(sample.ids);
    }
    options_.numbers > 0 ? fill_numbers(first, count, batch)
                         : fill_labels(first, count, width, batch);
  }

 private:
  const RowLabel& label_of(std::int64_t row) const {
    return texts_.labels[static_cast<std::size_t>(row)];
  }
  void fill_labels(std::int64_t first, std::int64_t count, std::int64_t width,
                   BatchInputs& batch) const {
    const std::span<std::int32_t> out = batch.fill_with<std::int32_t>("labels", kIgnoredLabel);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = order_.row(first + i);
      if (row < 0) continue;
      if (const WordLabels* const words = label_of(row).words()) {
        const std::span<const std::int32_t> of_tokens = words->of_tokens;
        std::ranges::copy(framed(unlabelled_, std::span(&of_tokens, 1), width).ids,
                          out.subspan(static_cast<std::size_t>(i * width)).begin());
      } else {
        out[static_cast<std::size_t>(i)] = label_of(row).number();
      }
    }
  }
  void fill_numbers(std::int64_t first, std::int64_t count, BatchInputs& batch) const {
    const std::span<float> out = batch.fill_with<float>("labels", kIgnoredNumber);
    const auto each = static_cast<std::size_t>(options_.numbers);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = order_.row(first + i);
      if (row < 0 || label_of(row).none()) continue;
      const std::span<float> of_row = out.subspan(static_cast<std::size_t>(i) * each, each);
      std::ranges::fill(of_row, 0.0F);
      std::ranges::copy(label_of(row).numbers(), of_row.begin());
    }
  }
  FramedTexts sample_of(std::int64_t row, std::int64_t width) const {
    std::array<std::span<const std::int32_t>, 2> texts;
    const auto columns = static_cast<std::size_t>(texts_.rows.columns);
    for (std::size_t column = 0; column < columns; ++column)
      texts[column] = texts_.rows.text(texts_.tokens.all(), row, static_cast<std::int64_t>(column));
    return framed(options_.frame, std::span(texts).first(columns), width);
  }
  std::int32_t last_of(std::span<const std::int32_t> ids) const {
    std::size_t out = ids.size();
    while (out > 0 && options_.not_last == ids[out - 1]) --out;
    return static_cast<std::int32_t>(out == 0 ? 0 : out - 1);
  }

  const Texts& texts_;
  LabelledTextsOptions options_;
  TextFrame unlabelled_;  // as that of options_, with kIgnoredLabel in place of its tokens
  RowOrder order_;
};

}  // namespace

std::unique_ptr<Samples> labelled_texts(const Dataset& data, DataPart part,
                                        const LabelledTextsOptions& options) {
  return std::make_unique<LabelledTexts>(data, part, options);
}

std::int64_t longest_sample(const Dataset& data, const TextFrame& frame) {
  std::int64_t out = 0;
  for (std::int64_t row = 0; row < data.texts().rows.rows(); ++row)
    out = std::max(out, sample_length(data, frame, row));
  return out;
}

}  // namespace tessera
