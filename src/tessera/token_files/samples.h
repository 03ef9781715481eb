#pragma once
/// Samples by number: the one interface between data and the training loop.

#include <cstdint>
#include <string>

#include "tessera/tensor/batch_inputs.h"

namespace tessera {

/// Where a step stands in the passes over the training data, both counted from 1.
struct EpochPlace {
  std::int64_t epoch = 1, step = 1;
  friend bool operator==(const EpochPlace&, const EpochPlace&) = default;
};
/// Of a step of `batch` samples that begins with sample `first`, of `size` in an epoch. A step
/// belongs to the epoch of its first sample.
EpochPlace place_in_epoch(std::int64_t first, std::int64_t batch, std::int64_t size);

/// Training or validation data, as the inputs of a task. Which sample has which number is a pure
/// function of the data and a seed, so a run's place in its data is one number. All functions may
/// be called from any thread.
class Samples {
 public:
  virtual ~Samples() = default;
  /// Samples in one pass over the data: an epoch, or all of a validation.
  virtual std::int64_t size() const = 0;
  /// Writes samples [first, first + count) into every input of `batch`, whose first dim is `count`.
  /// Training data goes on beyond size() with the next epoch; beyond the end of validation data are
  /// samples of which nothing counts.
  virtual void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const = 0;
  /// Which bucket the batch of a step is of that begins with sample `first`, by its length; 0:
  /// there are no buckets, or it is the last one, as wide as the task's inputs (data/buckets.h).
  virtual std::int64_t bucket_length(std::int64_t /*first*/) const { return 0; }
  /// What the user is to know of them, as how much of the data is left out; empty: nothing.
  virtual std::string notice() const { return ""; }
};

}  // namespace tessera
