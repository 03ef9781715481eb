#pragma once
/// In which order the items of a part are samples: rows, documents, windows of questions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tessera/data/buckets.h"
#include "tessera/token_files/data_split.h"

namespace tessera {

/// Items that train are there once in an epoch, in an order drawn anew for each, or in batches of
/// like lengths; held-out ones are there once, as they lie.
class PartOrder {
 public:
  /// `most`: of items that are held out, the first so many; 0: all.
  PartOrder(DataPart part, std::int64_t items, std::uint64_t seed, std::int64_t most);
  /// The same; items that train, of these `lengths`, in `buckets`, if these have lengths.
  PartOrder(DataPart part, std::span<const std::int64_t> lengths, std::uint64_t seed,
            std::int64_t most, const BucketOptions& buckets);

  /// As Samples::size and bucket_length.
  std::int64_t size() const { return size_; }
  std::int64_t bucket_length(std::int64_t first) const {
    return buckets_ ? buckets_->length(first) : 0;
  }
  /// Which item sample `number` of the run is; -1: none, behind the end of a validation, and in a
  /// batch that is not full.
  std::int64_t item(std::int64_t number) const;
  /// LengthBuckets::notice, of items with `used` tokens in all; empty: there are no buckets.
  std::string notice(std::int64_t used) const;

 private:
  bool trains_;
  std::int64_t size_;
  std::uint64_t key_;
  std::optional<LengthBuckets> buckets_;
  std::vector<std::int64_t> bucket_lengths_;
};

}  // namespace tessera
