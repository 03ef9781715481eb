#pragma once
/// Pairs of answers as samples.

#include <cstdint>
#include <memory>

#include "tessera/data/buckets.h"
#include "tessera/token_files/data_split.h"
#include "tessera/token_files/samples.h"

namespace tessera {

struct Dataset;

/// Inputs of a batch, all i32 [b, context]: ids of a prompt with an answer; labels, the tokens one
/// later that belong to the answer, else kIgnoredLabel.
inline constexpr const char *kChosenIds = "chosen_ids", *kChosenLabels = "chosen_labels",
                            *kRejectedIds = "rejected_ids", *kRejectedLabels = "rejected_labels";

struct PreferencePairOptions {
  std::int64_t context = 0;    // positions of a row
  std::uint64_t seed = 0;      // of the order of the samples that train
  BucketOptions buckets = {};  // where the part trains
  std::int64_t most = 0;       // held out: the first so many samples; 0: all
};

/// Samples of load_preferences (data/preference_rows.h). Behind a row is padding; of a sample that
/// is padding alone no label counts. `data` outlives them.
/// Errors: Fault::Data: no pair in the part; one that is longer than the context.
std::unique_ptr<Samples> preference_pairs(const Dataset& data, DataPart part,
                                          const PreferencePairOptions& options);

/// Positions of the longest row.
std::int64_t longest_preference(const Dataset& data);

}  // namespace tessera
