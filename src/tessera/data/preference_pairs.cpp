#include "tessera/data/preference_pairs.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/dataset.h"
#include "tessera/data/part_order.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

/// Positions of the longer answer with its prompt; the last token is only predicted.
std::int64_t pair_length(const Texts& texts, std::int64_t row) {
  std::int64_t out = 0;
  for (std::int64_t column = 0; column < 2; ++column)
    out = std::max(out, std::ssize(texts.rows.text(texts.tokens.all(), row, column)) - 1);
  return out;
}

class PreferencePairs final : public Samples {
 public:
  PreferencePairs(const Dataset& data, DataPart part, const PreferencePairOptions& options)
      : texts_(data.texts()),
        first_row_(part == DataPart::Train ? 0 : texts_.rows.train),
        order_(part, lengths_of(data, part, options.context), options.seed, options.most,
               options.buckets) {
    check(texts_.rows.columns == 2 && !texts_.counts.empty(), "preferences as data");
  }

  std::int64_t size() const override { return order_.size(); }
  std::int64_t bucket_length(std::int64_t first) const override {
    return order_.bucket_length(first);
  }
  std::string notice() const override { return order_.notice(used_); }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    constexpr std::array kIds = {kChosenIds, kRejectedIds};
    constexpr std::array kLabels = {kChosenLabels, kRejectedLabels};
    for (std::size_t column = 0; column < 2; ++column) {
      const std::span<std::int32_t> ids = batch.fill_with<std::int32_t>(kIds[column], 0),
                                    labels = batch.fill_with<std::int32_t>(kLabels[column],
                                                                           kIgnoredLabel);
      const std::size_t width = ids.size() / static_cast<std::size_t>(count);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t item = order_.item(first + i);
        const std::size_t at = static_cast<std::size_t>(i) * width;
        if (item >= 0)
          fill_row(first_row_ + item, static_cast<std::int64_t>(column), ids.subspan(at, width),
                   labels.subspan(at, width));
      }
    }
  }

 private:
  void fill_row(std::int64_t row, std::int64_t column, std::span<std::int32_t> ids,
                std::span<std::int32_t> labels) const {
    const std::span<const std::int32_t> all = texts_.tokens.all(),
                                        tokens = texts_.rows.text(all, row, column);
    const auto counts =
        std::span(texts_.counts).subspan(static_cast<std::size_t>(tokens.data() - all.data()));
    std::ranges::copy(tokens.first(tokens.size() - 1), ids.begin());
    for (std::size_t t = 1; t < tokens.size(); ++t)
      if (counts[t] != 0) labels[t - 1] = tokens[t];
  }

  std::vector<std::int64_t> lengths_of(const Dataset& data, DataPart part, std::int64_t context) {
    const bool trains = part == DataPart::Train;
    std::vector<std::int64_t> out;
    for (std::int64_t row = first_row_, end = trains ? texts_.rows.train : texts_.rows.rows();
         row < end; ++row) {
      out.push_back(pair_length(texts_, row));
      used_ += out.back();
      if (out.back() > context)
        fail(Fault::Data, "pair ", row + 1, " of ", name_of_part(texts_, part), " has ",
             out.back() + 1, " tokens, more than the ", context + 1, " that the context of ",
             context, " holds; give a larger context (--seq-length)");
    }
    if (out.empty())
      fail(Fault::Data, "the ", trains ? "training" : "held-out", " part of ",
           name_of_part(data.texts(), part), " has no pair of answers; give more lines",
           trains ? "" : ", or hold out more of them");
    return out;
  }

  const Texts& texts_;
  std::int64_t first_row_, used_ = 0;
  PartOrder order_;
};

}  // namespace

std::unique_ptr<Samples> preference_pairs(const Dataset& data, DataPart part,
                                          const PreferencePairOptions& options) {
  return std::make_unique<PreferencePairs>(data, part, options);
}

std::int64_t longest_preference(const Dataset& data) {
  std::int64_t out = 1;
  for (std::int64_t row = 0; row < data.texts().rows.rows(); ++row)
    out = std::max(out, pair_length(data.texts(), row));
  return out;
}

}  // namespace tessera
