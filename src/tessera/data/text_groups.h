#pragma once
/// Samples of texts that belong together: an anchor, its positive and perhaps a negative; or a text
/// and its choices.

#include <cstdint>
#include <memory>

#include "tessera/data/buckets.h"
#include "tessera/token_files/data_split.h"
#include "tessera/token_files/samples.h"
#include "tessera/tokenizers/text_frame.h"

namespace tessera {

struct Dataset;

struct TextGroupsOptions {
  std::int64_t context = 0;  // positions of a text, or a pair
  std::int64_t texts = 0;    // of a sample, or pairs
  bool pairs = false;        // each text behind the first of a row is one with that
  TextFrame frame = {};
  std::int32_t pad = 0;        // behind a text
  std::uint64_t seed = 0;      // of the order of the samples that train
  BucketOptions buckets = {};  // where the part trains
  std::int64_t most = 0;       // held out: the first so many samples; 0: all
  bool types = false;          // there is an input of that name
};

/// A row of `data`, which outlives the samples, is a sample: each of its texts within the frame of
/// one text, or each pair within that of two, cut to the context, and padding behind it. Of pairs a
/// row may have fewer: then its last texts are empty.
///
/// Inputs of a batch of n samples, all i32:
///   ids [n, texts, context]    tokens
///   types [n, texts, context]  of the tokens; 0 at padding
///   mask [n, texts, context]   1; 0 at padding, and where there is no sample, or no pair
///   labels [n]                 of pairs: those of the rows; kIgnoredLabel where there is no sample
///
/// Orders and errors: those of labelled_texts.
std::unique_ptr<Samples> text_groups(const Dataset& data, DataPart part,
                                     const TextGroupsOptions& options);

/// Tokens of the longest text, or pair, of either part within the frame, uncut.
std::int64_t longest_of_groups(const Dataset& data, const TextFrame& frame, bool pairs = false);

}  // namespace tessera
