#include "tessera/data/labelled_texts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/part_order.h"
#include "tessera/files/part_text.h"
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
        trains_(part == DataPart::Train),
        first_row_(trains_ ? 0 : texts_.rows.train),
        unlabelled_(options.frame),
        order_(part, lengths_of(data), options.seed, options.most, options.buckets) {
    for (std::vector<FramePart>* parts : {&unlabelled_.single, &unlabelled_.pair}) {
      for (FramePart& part : *parts) part.id = kIgnoredLabel;
    }
  }

  std::int64_t size() const override { return order_.size(); }

  std::int64_t bucket_length(std::int64_t first) const override {
    return order_.bucket_length(first);
  }

  std::string notice() const override {
    const std::string cut =
        cut_ == 0 ? ""
                  : text(counted(cut_, "sample"), part_text(trains_, texts_.rows.train > 0), " ",
                         cut_ == 1 ? "is" : "are", " longer than the context of ", options_.context,
                         " tokens, and cut");
    const std::string buckets = order_.notice(used_);
    return text(cut, cut.empty() || buckets.empty() ? "" : "; ", buckets);
  }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill_with<std::int32_t>("ids", options_.pad);
    std::span<std::int32_t> types, mask, last;
    if (options_.types) types = batch.fill_with<std::int32_t>("types", 0);
    if (options_.mask) mask = batch.fill_with<std::int32_t>("mask", 0);
    if (options_.last) last = batch.fill_with<std::int32_t>("last", 0);
    const std::int64_t width = std::ssize(ids) / count;  // the context, or the length of a bucket
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t item = order_.item(first + i);
      if (item < 0) continue;
      const std::int64_t row = first_row_ + item;
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
  const RowLabel& label_of(std::int64_t item) const {
    return texts_.labels[static_cast<std::size_t>(first_row_ + item)];
  }
  void fill_labels(std::int64_t first, std::int64_t count, std::int64_t width,
                   BatchInputs& batch) const {
    const std::span<std::int32_t> out = batch.fill_with<std::int32_t>("labels", kIgnoredLabel);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t item = order_.item(first + i);
      if (item < 0) continue;
      if (const WordLabels* const words = label_of(item).words()) {
        const std::span<const std::int32_t> of_tokens = words->of_tokens;
        std::ranges::copy(framed(unlabelled_, std::span(&of_tokens, 1), width).ids,
                          out.subspan(static_cast<std::size_t>(i * width)).begin());
      } else {
        out[static_cast<std::size_t>(i)] = label_of(item).number();
      }
    }
  }
  void fill_numbers(std::int64_t first, std::int64_t count, BatchInputs& batch) const {
    const std::span<float> out = batch.fill_with<float>("labels", kIgnoredNumber);
    const auto each = static_cast<std::size_t>(options_.numbers);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t item = order_.item(first + i);
      if (item < 0 || label_of(item).none()) continue;
      const std::span<float> of_row = out.subspan(static_cast<std::size_t>(i) * each, each);
      std::ranges::fill(of_row, 0.0F);
      std::ranges::copy(label_of(item).numbers(), of_row.begin());
    }
  }
  /// Of the rows of the part, within the context; counts those that are cut.
  std::vector<std::int64_t> lengths_of(const Dataset& data) {
    const std::int64_t rows = texts_.rows.rows(), end = trains_ ? texts_.rows.train : rows;
    check(std::ssize(texts_.labels) == rows, "labels of rows");
    if (first_row_ == end)
      fail(Fault::Data, "the ", trains_ ? "training" : "held-out", " part of ",
           name_of_part(texts_, trains_ ? DataPart::Train : DataPart::Valid),
           " has no row; give more rows", trains_ ? "" : ", or hold out more of them");
    const std::int64_t around =
        options_.frame.around(static_cast<std::size_t>(texts_.rows.columns));
    if (options_.context <= around)
      fail(Fault::Usage, "context is ", options_.context, ", which leaves no room for text beside ",
           "the ", around, " special tokens of a sample; give a context of ", around + 1,
           " or more");
    std::vector<std::int64_t> out;
    for (std::int64_t row = first_row_; row < end; ++row) {
      const std::int64_t length = sample_length(data, options_.frame, row);
      cut_ += length > options_.context;
      out.push_back(std::min(length, options_.context));
      used_ += out.back();
    }
    return out;
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
  bool trains_;
  std::int64_t first_row_, cut_ = 0, used_ = 0;
  TextFrame unlabelled_;  // as that of options_, with kIgnoredLabel in place of its tokens
  PartOrder order_;
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
