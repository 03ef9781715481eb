#include "tessera/data/documents.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/part_order.h"
#include "tessera/files/part_text.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

std::vector<std::vector<std::int64_t>> best_fit_decreasing(std::span<const std::int64_t> lengths,
                                                           std::int64_t room) {
  std::vector<std::int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](std::int64_t i) { return lengths[static_cast<std::size_t>(i)]; };
  std::ranges::stable_sort(order, std::greater<>(), length);
  std::vector<std::vector<std::int64_t>> out;
  std::map<std::int64_t, std::vector<std::size_t>> with_room;  // bins by what they still hold
  for (const std::int64_t i : order) {
    check(length(i) >= 1 && length(i) <= room, "length ", length(i), " for a bin of ", room);
    const auto best = with_room.lower_bound(length(i));
    std::size_t bin = out.size();
    std::int64_t left = room;
    if (best == with_room.end()) {
      out.emplace_back();
    } else {
      left = best->first;
      bin = best->second.back();
      best->second.pop_back();
      if (best->second.empty()) with_room.erase(best);
    }
    out[bin].push_back(i);
    left -= length(i);
    if (left > 0) with_room[left].push_back(bin);
  }
  for (std::vector<std::int64_t>& bin : out) std::ranges::sort(bin);
  std::ranges::sort(out, {}, [](const std::vector<std::int64_t>& bin) { return bin.front(); });
  return out;
}

namespace {

std::string percent(double share) { return text(std::round(share * 1000) / 10, " %"); }

class DocumentSamples final : public Samples {
 public:
  DocumentSamples(const Dataset& data, DataPart part, const DocumentOptions& options)
      : options_(options),
        part_(part),
        some_train_(data.texts().rows.train > 0),
        order_(order_of(data.texts())) {}

  std::int64_t size() const override { return order_.size(); }

  std::int64_t bucket_length(std::int64_t first) const override {
    return order_.bucket_length(first);
  }

  std::string notice() const override {
    const auto padding = [&](std::int64_t samples) {
      const double there = static_cast<double>(samples) * static_cast<double>(options_.context);
      return percent(1 - static_cast<double>(positions_) / there);
    };
    const bool packed = options_.packing == Packing::Bfd;
    const std::string buckets = order_.notice(positions_);
    return text("packing ", to_text(options_.packing), ": ",
                counted(std::ssize(documents_), "document"),
                part_text(part_ == DataPart::Train, some_train_), " ",
                std::ssize(documents_) == 1 ? "is" : "are", " in ", counted(samples(), "sample"),
                " of ", options_.context, " positions, of which padding takes ", padding(samples()),
                packed ? text(" (a document in each: ", padding(std::ssize(documents_)), ")") : "",
                cut_ == 0 ? "" : text("; ", cut_, cut_ == 1 ? " is" : " are", " longer and cut"),
                buckets.empty() ? "" : "; ", buckets);
  }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids"),
                                  labels = batch.fill<std::int32_t>("labels");
    std::span<std::int32_t> positions, first_seen;
    if (options_.positions) positions = batch.fill<std::int32_t>("positions");
    if (options_.first_seen) first_seen = batch.fill<std::int32_t>("first_seen");
    std::ranges::fill(ids, 0);
    std::ranges::fill(labels, kIgnoredLabel);
    const std::int64_t width = std::ssize(ids) / count;  // the context, or the length of a bucket
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<std::size_t>(i * width);
      std::size_t at = 0;
      // `n` positions of a document, or of the padding behind them.
      const auto place = [&](std::size_t n) {
        for (std::size_t t = 0; t < n; ++t) {
          if (options_.positions) positions[row + at + t] = static_cast<std::int32_t>(t);
          if (options_.first_seen) first_seen[row + at + t] = static_cast<std::int32_t>(at);
        }
        at += n;
      };
      each_document(order_.item(first + i), [&](std::int64_t document) {
        const std::span<const std::int32_t> tokens = documents_[static_cast<std::size_t>(document)];
        const auto n = static_cast<std::size_t>(positions_of(tokens));
        std::ranges::copy(tokens.first(n), ids.subspan(row + at).begin());
        const std::span<const std::uint8_t> counts = counts_[static_cast<std::size_t>(document)];
        for (std::size_t t = 0; t < n; ++t) {
          if (counts.empty() || counts[t + 1] != 0) labels[row + at + t] = tokens[t + 1];
        }
        place(n);
      });
      place(static_cast<std::size_t>(width) - at);
    }
  }

 private:
  /// Takes the documents of the part, and packs them.
  PartOrder order_of(const Texts& texts) {
    const RowTokens& rows = texts.rows;
    check(rows.columns == 1 && options_.packing != Packing::Wrapped, "documents of rows");
    const bool trains = part_ == DataPart::Train;
    const std::int64_t begin = trains ? 0 : rows.train, end = trains ? rows.train : rows.rows();
    std::vector<std::int64_t> lengths;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::span<const std::int32_t> tokens = rows.text(texts.tokens.all(), row, 0);
      if (tokens.size() < 2) continue;  // nothing is to be predicted
      documents_.push_back(tokens);
      counts_.push_back(counts_of(texts, tokens));
      lengths.push_back(positions_of(tokens));
      cut_ += std::ssize(tokens) - 1 > options_.context;
      positions_ += lengths.back();
    }
    if (documents_.empty())
      fail(Fault::Data, "the ", trains ? "training" : "held-out", " part of ",
           name_of_part(texts, part_), " has no document with a token to predict; give more rows",
           trains ? "" : ", or hold out more of them");
    if (options_.packing == Packing::None)
      return {part_, lengths, options_.seed, options_.most, options_.buckets};
    packs_ = best_fit_decreasing(lengths, options_.context);
    return {part_, std::ssize(packs_), options_.seed, options_.most};
  }
  /// Texts::counts of a row's tokens.
  static std::span<const std::uint8_t> counts_of(const Texts& texts,
                                                 std::span<const std::int32_t> tokens) {
    if (texts.counts.empty()) return {};
    const auto begin = static_cast<std::size_t>(tokens.data() - texts.tokens.all().data());
    return std::span(texts.counts).subspan(begin, tokens.size());
  }
  std::int64_t positions_of(std::span<const std::int32_t> tokens) const {
    return std::min(std::ssize(tokens) - 1, options_.context);
  }
  std::int64_t samples() const {
    return options_.packing == Packing::Bfd ? std::ssize(packs_) : std::ssize(documents_);
  }
  /// Calls `take` with the number of each document in the sample.
  template <typename Take>
  void each_document(std::int64_t sample, const Take& take) const {
    if (sample < 0) return;
    if (options_.packing == Packing::None) return take(sample);
    for (const std::int64_t document : packs_[static_cast<std::size_t>(sample)]) take(document);
  }

  DocumentOptions options_;
  DataPart part_;
  bool some_train_;
  std::vector<std::span<const std::int32_t>> documents_;
  std::vector<std::span<const std::uint8_t>> counts_;  // of each; empty: all tokens count
  std::vector<std::vector<std::int64_t>> packs_;       // of Packing::Bfd: documents of each sample
  std::int64_t cut_ = 0, positions_ = 0;
  PartOrder order_;
};

}  // namespace

std::unique_ptr<Samples> document_samples(const Dataset& data, DataPart part,
                                          const DocumentOptions& options) {
  return std::make_unique<DocumentSamples>(data, part, options);
}

}  // namespace tessera
