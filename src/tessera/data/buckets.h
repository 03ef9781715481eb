#pragma once
/// Samples of like length in one batch, so that little of it is padding.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// "32,64,128" as numbers. Errors: Fault::Usage: no numbers with commas between, not ascending, one
/// below 1.
std::vector<std::int64_t> parse_bucket_lengths(std::string_view words);

/// How samples are shared out. None of `lengths`: they are not.
struct BucketOptions {
  std::vector<std::int64_t> lengths =
      {};                  // of buckets, ascending; the last has room for any sample
  std::int64_t batch = 0;  // samples of a step
};

/// Which samples make the batch of a step: a pure function of the seed and the number of the step.
///
/// A sample belongs to the first bucket that has room for it. Those that do not fill a batch there,
/// the longest of the bucket, go to the next one; in the last bucket a batch may have rows without
/// a sample. So each sample is there once in an epoch, and the order of batches and of the samples
/// of a bucket is drawn anew for each epoch. All functions may be called from any thread.
class LengthBuckets {
 public:
  /// `lengths`: of the samples, by number; at least one.
  LengthBuckets(std::span<const std::int64_t> lengths, BucketOptions options, std::uint64_t seed);

  /// Steps of an epoch.
  std::int64_t steps() const { return first_steps_.back(); }
  /// The length of the bucket of the step that begins with sample `first` of the run; 0: it is the
  /// last bucket.
  std::int64_t length(std::int64_t first) const;
  /// Which of the samples is number `drawn` of the run; -1: none is.
  std::int64_t sample(std::int64_t drawn) const;

  /// What the user is to know: samples of each bucket, and which part of the tokens of an epoch is
  /// padding, with them and without. `tokens`: of a sample as wide as each bucket; `used`: of all
  /// samples, without padding.
  std::string notice(std::span<const std::int64_t> tokens, std::int64_t used) const;

 private:
  struct Slot {
    std::int64_t epoch;
    std::size_t bucket;
    std::int64_t batch;  // of the bucket
  };
  Slot slot(std::int64_t step) const;
  std::int64_t size(std::size_t bucket) const { return begins_[bucket + 1] - begins_[bucket]; }

  BucketOptions options_;
  std::vector<std::int64_t> order_;  // all samples, shortest first
  // Where each bucket begins, in order_ and among the steps of an epoch; and where the last ends.
  std::vector<std::int64_t> begins_, first_steps_;
  std::uint64_t step_key_;
  std::vector<std::uint64_t> sample_keys_;
};

}  // namespace tessera
