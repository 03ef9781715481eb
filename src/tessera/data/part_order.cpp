#include "tessera/data/part_order.h"

#include <algorithm>

#include "tessera/base/hash.h"
#include "tessera/token_files/permutation.h"

namespace tessera {

PartOrder::PartOrder(DataPart part, std::int64_t items, std::uint64_t seed, std::int64_t most)
    : trains_(part == DataPart::Train),
      size_(!trains_ && most > 0 ? std::min(most, items) : items),
      key_(random_key(seed, "data.order")) {}

PartOrder::PartOrder(DataPart part, std::span<const std::int64_t> lengths, std::uint64_t seed,
                     std::int64_t most, const BucketOptions& buckets)
    : PartOrder(part, std::ssize(lengths), seed, most) {
  if (!trains_ || buckets.lengths.empty()) return;
  buckets_.emplace(lengths, buckets, seed);
  bucket_lengths_ = buckets.lengths;
  size_ = buckets_->steps() * buckets.batch;
}

std::int64_t PartOrder::item(std::int64_t number) const {
  if (buckets_) return buckets_->sample(number);
  if (!trains_) return number < size_ ? number : -1;
  const auto n = static_cast<std::uint64_t>(size_), k = static_cast<std::uint64_t>(number);
  return static_cast<std::int64_t>(permute(k % n, n, key_, k / n));
}

std::string PartOrder::notice(std::int64_t used) const {
  return buckets_ ? buckets_->notice(bucket_lengths_, used) : "";
}

}  // namespace tessera
