#pragma once
/// Samples of one or two texts with a label, for models that classify them.

#include <cstdint>
#include <memory>
#include <optional>

#include "tessera/data/buckets.h"
#include "tessera/token_files/data_split.h"
#include "tessera/token_files/samples.h"
#include "tessera/tokenizers/text_frame.h"

namespace tessera {

struct Dataset;

struct LabelledTextsOptions {
  std::int64_t context = 0;  // positions of a sample
  TextFrame frame = {};
  std::int32_t pad = 0;                            // behind the texts
  std::optional<std::int32_t> not_last = {};       // a token that `last` passes over
  std::uint64_t seed = 0;                          // of the order of the samples that train
  BucketOptions buckets = {};                      // where the part trains
  std::int64_t most = 0;                           // held out: the first so many samples; 0: all
  bool types = false, mask = false, last = false;  // inputs of that name are there
  std::int64_t numbers = 0;  // in a label, where it is numbers: RowLabel::numbers has no more
};

/// A row of `data`, which has labels and outlives the samples, is a sample: its texts within the
/// frame, cut to the context (text_frame.h), and padding behind them.
///
/// Inputs of a batch of n samples, all i32 but for the last:
///   ids [n, context]      tokens
///   types [n, context]    of the tokens; 0 at padding
///   mask [n, context]     1; 0 at padding
///   last [n]              the position of the last token that is not `not_last`; 0: there is none
///   labels [n]            numbers of labels; kIgnoredLabel where there is no sample
/// or, of data whose tokens have labels:
///   labels [n, context]   those of the tokens; kIgnoredLabel at all others
/// or, of labels that are numbers:
///   labels [n, numbers]   f32; 0 behind those of the row; kIgnoredNumber where there are none
///
/// Samples that train are there once in an epoch, in an order drawn anew for each; held-out ones
/// are in the order of the rows. Errors: Fault::Data: no row in the part;
/// Fault::Usage: a context without room for a token beside the frame.
std::unique_ptr<Samples> labelled_texts(const Dataset& data, DataPart part,
                                        const LabelledTextsOptions& options);

/// Tokens of the longest sample of either part, uncut.
std::int64_t longest_sample(const Dataset& data, const TextFrame& frame);

}  // namespace tessera
