#include "tessera/data/text_groups.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/part_order.h"
#include "tessera/files/part_text.h"

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
        trains_(part == DataPart::Train),
        first_row_(trains_ ? 0 : texts_.rows.train),
        order_(part, lengths(), options.seed, options.most, options.buckets) {}

  std::int64_t size() const override { return order_.size(); }
  std::int64_t bucket_length(std::int64_t first) const override {
    return order_.bucket_length(first);
  }

  std::string notice() const override {
    const std::string cut =
        cut_ == 0 ? ""
                  : text(counted(cut_, "sample"), part_text(trains_, texts_.rows.train > 0),
                         cut_ == 1 ? " has" : " have", " a text longer than the context of ",
                         options_.context, " tokens, and that is cut");
    const std::string buckets = order_.notice(used_);
    return text(cut, cut.empty() || buckets.empty() ? "" : "; ", buckets);
  }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill_with<std::int32_t>("ids", options_.pad),
                                  mask = batch.fill_with<std::int32_t>("mask", 0);
    std::span<std::int32_t> types;
    if (options_.types) types = batch.fill_with<std::int32_t>("types", 0);
    const std::int64_t columns = texts_.rows.columns;
    const std::int64_t width = std::ssize(ids) / (count * columns);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t item = order_.item(first + i);
      if (item < 0) continue;
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::span<const std::int32_t> tokens =
            texts_.rows.text(texts_.tokens.all(), first_row_ + item, column);
        const FramedTexts one = framed(options_.frame, std::span(&tokens, 1), width);
        const auto at = static_cast<std::size_t>((i * columns + column) * width);
        std::ranges::copy(one.ids, ids.subspan(at).begin());
        std::ranges::fill(mask.subspan(at, one.ids.size()), 1);
        if (options_.types) std::ranges::copy(one.types, types.subspan(at).begin());
      }
    }
  }

 private:
  /// Of the rows of the part, within the context; counts those that are cut.
  std::vector<std::int64_t> lengths() {
    const std::int64_t end = trains_ ? texts_.rows.train : texts_.rows.rows(),
                       around = options_.frame.around(1);
    if (first_row_ == end)
      fail(Fault::Data, "the ", trains_ ? "training" : "held-out", " part of ",
           name_of_part(texts_, trains_ ? DataPart::Train : DataPart::Valid),
           " has no row; give more rows", trains_ ? "" : ", or hold out more of them");
    if (options_.context <= around)
      fail(Fault::Usage, "context is ", options_.context, ", which leaves no room for text beside ",
           "the ", around, " special tokens of a text; give a context of ", around + 1, " or more");
    std::vector<std::int64_t> out;
    for (std::int64_t row = first_row_; row < end; ++row) {
      const std::int64_t length = group_length(texts_, options_.frame, row);
      cut_ += length > options_.context;
      out.push_back(std::min(length, options_.context));
      used_ += out.back();
    }
    return out;
  }

  const Texts& texts_;
  TextGroupsOptions options_;
  bool trains_;
  std::int64_t first_row_, cut_ = 0, used_ = 0;
  PartOrder order_;
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
