#include "tessera/data/labelled_texts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/files/part_text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/token_files/permutation.h"

namespace tessera {

namespace {

/// Tokens of a row as a sample, uncut.
std::int64_t sample_length(const Dataset& data, const TextFrame& frame, std::int64_t row) {
  std::int64_t out = frame.around(static_cast<std::size_t>(data.rows.columns));
  for (std::int64_t column = 0; column < data.rows.columns; ++column)
    out += std::ssize(data.rows.text(data.tokens.all(), row, column));
  return out;
}

class LabelledTexts final : public Samples {
 public:
  LabelledTexts(const Dataset& data, Part part, const LabelledTextsOptions& options)
      : data_(data),
        options_(options),
        trains_(part == Part::Train),
        first_row_(trains_ ? 0 : data.rows.train),
        size_((trains_ ? data.rows.train : data.rows.rows()) - first_row_),
        key_(random_key(options.seed, "data.order")),
        unlabelled_(options.frame),
        of_tokens_(!data.labels.of_tokens.empty()) {
    for (std::vector<FramePart>* parts : {&unlabelled_.single, &unlabelled_.pair}) {
      for (FramePart& part : *parts) part.id = kIgnoredLabel;
    }
    const RowLabels& labels = data.labels;
    check(of_tokens_ ? labels.of_tokens.size() == data.tokens.all().size()
                     : std::ssize(labels.of_rows) == data.rows.rows(),
          "labels of rows");
    if (size_ == 0)
      fail(Fault::Data, "the ", trains_ ? "training" : "held-out", " part of ",
           name_of(trains_ || data.held_out_files.empty() ? data.files : data.held_out_files),
           " has no row; give more rows", trains_ ? "" : ", or hold out more of them");
    const std::int64_t around = options_.frame.around(static_cast<std::size_t>(data.rows.columns));
    if (options_.context <= around)
      fail(Fault::Usage, "context is ", options_.context, ", which has no room for texts beside ",
           "the ", around, " special tokens of a sample; give a context of ", around + 1,
           " or more");
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < size_; ++i) {
      const std::int64_t length = sample_length(data, options_.frame, first_row_ + i);
      cut_ += length > options_.context;
      lengths.push_back(std::min(length, options_.context));
      used_ += lengths.back();
    }
    if (!trains_ && options_.most > 0) size_ = std::min(size_, options_.most);
    if (!trains_ || options_.buckets.lengths.empty()) return;
    buckets_.emplace(lengths, options_.buckets, options_.seed);
    size_ = buckets_->steps() * options_.buckets.batch;
  }

  std::int64_t size() const override { return size_; }

  std::int64_t bucket_length(std::int64_t first) const override {
    return buckets_ ? buckets_->length(first) : 0;
  }

  std::string notice() const override {
    const std::string cut =
        cut_ == 0 ? ""
                  : text(counted(cut_, "sample"), part_text(trains_, data_.rows.train > 0), " ",
                         cut_ == 1 ? "is" : "are", " longer than the context of ", options_.context,
                         " tokens, and cut");
    if (!buckets_) return cut;
    return text(cut, cut.empty() ? "" : "; ", buckets_->notice(options_.buckets.lengths, used_));
  }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill_with<std::int32_t>("ids", options_.pad),
                                  labels = batch.fill_with<std::int32_t>("labels", kIgnoredLabel);
    std::span<std::int32_t> types, mask, last;
    if (options_.types) types = batch.fill_with<std::int32_t>("types", 0);
    if (options_.mask) mask = batch.fill_with<std::int32_t>("mask", 0);
    if (options_.last) last = batch.fill_with<std::int32_t>("last", 0);
    const std::int64_t width = std::ssize(ids) / count;  // the context, or the length of a bucket
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = row_of(first + i);
      if (row < 0) continue;
      const FramedTexts sample = sample_of(row, width, data_.tokens.all(), options_.frame);
      const auto at = static_cast<std::size_t>(i * width);
      std::ranges::copy(sample.ids, ids.subspan(at).begin());
      if (options_.types) std::ranges::copy(sample.types, types.subspan(at).begin());
      if (options_.mask) std::ranges::fill(mask.subspan(at, sample.ids.size()), 1);
      if (options_.last) last[static_cast<std::size_t>(i)] = last_of(sample.ids);
      if (of_tokens_) {
        std::ranges::copy(sample_of(row, width, data_.labels.of_tokens, unlabelled_).ids,
                          labels.subspan(at).begin());
      } else {
        labels[static_cast<std::size_t>(i)] = data_.labels.of_rows[static_cast<std::size_t>(row)];
      }
    }
  }

 private:
  /// The sample of a row, of what `all` has for each token of the data, within `frame`.
  FramedTexts sample_of(std::int64_t row, std::int64_t width, std::span<const std::int32_t> all,
                        const TextFrame& frame) const {
    std::array<std::span<const std::int32_t>, 2> texts;
    const auto columns = static_cast<std::size_t>(data_.rows.columns);
    for (std::size_t column = 0; column < columns; ++column)
      texts[column] = data_.rows.text(all, row, static_cast<std::int64_t>(column));
    return framed(frame, std::span(texts).first(columns), width);
  }
  std::int32_t last_of(std::span<const std::int32_t> ids) const {
    std::size_t out = ids.size();
    while (out > 0 && options_.not_last == ids[out - 1]) --out;
    return static_cast<std::int32_t>(out == 0 ? 0 : out - 1);
  }
  /// By number in the data; below 0 behind the end of a validation, and in a batch that is not
  /// full.
  std::int64_t row_of(std::int64_t number) const {
    if (buckets_) return buckets_->sample(number);
    if (!trains_) return number < size_ ? first_row_ + number : -1;
    return static_cast<std::int64_t>(permute(static_cast<std::uint64_t>(number % size_),
                                             static_cast<std::uint64_t>(size_), key_,
                                             static_cast<std::uint64_t>(number / size_)));
  }

  const Dataset& data_;
  LabelledTextsOptions options_;
  bool trains_;
  std::int64_t first_row_, size_;
  std::uint64_t key_;
  TextFrame unlabelled_;  // as that of options_, with kIgnoredLabel in place of its tokens
  bool of_tokens_;        // labels are those of tokens
  std::optional<LengthBuckets> buckets_;
  std::int64_t cut_ = 0, used_ = 0;
};

}  // namespace

std::unique_ptr<Samples> labelled_texts(const Dataset& data, Part part,
                                        const LabelledTextsOptions& options) {
  return std::make_unique<LabelledTexts>(data, part, options);
}

std::int64_t longest_sample(const Dataset& data, const TextFrame& frame) {
  std::int64_t out = 0;
  for (std::int64_t row = 0; row < data.rows.rows(); ++row)
    out = std::max(out, sample_length(data, frame, row));
  return out;
}

}  // namespace tessera
