#pragma once
/// Samples of the documents of a table, for models that predict the next token.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/data/buckets.h"
#include "tessera/data/packing.h"
#include "tessera/token_files/data_split.h"
#include "tessera/token_files/samples.h"

namespace tessera {

struct Dataset;

/// Puts things into bins that hold `room`, as few as the rule finds: the longest thing first, each
/// into the fullest bin that has room for it. `lengths` are 1 to `room`. Returns the numbers of the
/// things in each bin, ascending, and the bins by their first thing.
///
/// Source: Johnson 1973, Near-optimal bin packing algorithms: at most 11/9 of the fewest bins, + 4.
std::vector<std::vector<std::int64_t>> best_fit_decreasing(std::span<const std::int64_t> lengths,
                                                           std::int64_t room);

struct DocumentOptions {
  std::int64_t context = 0;                    // positions of a sample
  Packing packing = Packing::None;             // None or Bfd
  std::uint64_t seed = 0;                      // of the order of the samples that train
  BucketOptions buckets = {};                  // of Packing::None, where the part trains
  std::int64_t most = 0;                       // held out: the first so many samples; 0: all
  bool positions = false, first_seen = false;  // inputs of that name are there
};

/// A document of n tokens, its end included, takes n - 1 positions: each predicts the token that
/// follows, the last one the end. One that is longer than the context is cut. Behind the last
/// document of a sample is padding, of which nothing counts.
///
/// Inputs of a batch, all i32 [b, context]: ids; labels, kIgnoredLabel at padding; positions, that
/// count from the start of each document; first_seen, the first position of each document, before
/// which its tokens see nothing (token_files/left_to_right.h).
///
/// Samples that train are there once in an epoch, in an order drawn anew for each. `data` has
/// rows of one column and outlives them.
/// Errors: Fault::Data: no document in the part.
std::unique_ptr<Samples> document_samples(const Dataset& data, DataPart part,
                                          const DocumentOptions& options);

}  // namespace tessera
