#pragma once
/// The rows of a part as samples, none longer than the context.

#include <cstdint>
#include <functional>
#include <string>

#include "tessera/data/dataset.h"
#include "tessera/data/part_order.h"

namespace tessera {

struct RowOrderOptions {
  std::int64_t context = 0;  // positions
  std::int64_t around = 0;   // special tokens of a sample, or of each of its texts
  std::uint64_t seed = 0;    // of the order of the samples that train
  std::int64_t most = 0;     // held out: the first so many samples; 0: all
  BucketOptions buckets = {};
};

class RowOrder {
 public:
  /// `length(row)`: tokens of a row's sample, uncut. `texts` outlives it. Errors: Fault::Data: no
  /// row in the part; Fault::Usage: a context without room for a token beside those around.
  RowOrder(const Texts& texts, DataPart part, const RowOrderOptions& options,
           const std::function<std::int64_t(std::int64_t row)>& length);

  /// As Samples::size, bucket_length and notice, which also tells how many are cut.
  std::int64_t size() const { return order_.size(); }
  std::int64_t bucket_length(std::int64_t first) const { return order_.bucket_length(first); }
  std::string notice() const;
  /// Which row sample `number` of the run is; -1: none.
  std::int64_t row(std::int64_t number) const {
    const std::int64_t item = order_.item(number);
    return item < 0 ? -1 : first_row_ + item;
  }

 private:
  std::vector<std::int64_t> lengths(const RowOrderOptions& options,
                                    const std::function<std::int64_t(std::int64_t row)>& length);

  const Texts& texts_;
  bool trains_;
  std::int64_t first_row_, context_, cut_ = 0, used_ = 0;
  PartOrder order_;
};

}  // namespace tessera
