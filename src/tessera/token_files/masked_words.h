#pragma once
/// Samples with masked words as Megatron-LM makes them, for BERT and T5.

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/token_files/numpy_random.h"

namespace tessera {

using TokenIds = std::vector<std::int32_t>;

/// What the masking has to know of a vocabulary of word pieces.
struct WordPieces {
  std::vector<std::int32_t> ids;  // all of them, in the order of the vocabulary's file
  std::function<bool(std::int32_t)> continues;  // the piece goes on a word: it begins with ##
  std::int32_t cls = 0, sep = 0, mask = 0, pad = 0;
  std::int32_t begin = 0, end = 0;      // of a text that is written: T5's
  std::vector<std::int32_t> sentinels;  // that stand for what is masked, in order: T5's
};

struct MaskingOptions {
  double probability = 0.15;  // of a token to be predicted
  std::int64_t longest = 3;   // words that are masked together
  bool whole_words = true;
  bool prefer_long = false;  // longer runs of words are the likelier ones
  bool geometric = false;    // the number of words is geometric with p = 0.2: T5's
};

/// Tokens of which some are masked, and what was there, in the order of the positions.
struct MaskedTokens {
  TokenIds ids;
  std::vector<std::pair<std::int64_t, std::int32_t>> labels;  // position, token
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;   // first position, last position
};

/// What the model sees of a token that it is to predict; the vocabulary's mask, another token, or
/// the token itself.
using ShownToken = std::function<std::int32_t(std::int32_t token, NumpyRandom& random)>;

/// Masks runs of up to options.longest words, tokens of `ids` but for cls and sep. `target` is how
/// many tokens were wanted of the sample.
MaskedTokens mask_words(const TokenIds& ids, std::int64_t target, const WordPieces& pieces,
                        const MaskingOptions& options, const ShownToken& shown,
                        NumpyRandom& random);

/// A sample of BERT; all but the last two are [context].
struct BertSample {
  TokenIds ids, types, labels;       // labels: -1 where nothing is to be predicted
  TokenIds loss_mask, padding_mask;  // 0: not predicted; padding, which is not seen
  bool exchanged = false;            // the second part stood before the first in the text
  bool truncated = false;
};

/// [CLS] A [SEP] B [SEP], or with a single part [CLS] A [SEP]. `sentences` are the sample's, at
/// least two where there are two parts. `seed` is (the run's + the number of the sample) mod 2^32.
BertSample bert_sample(std::span<const TokenIds> sentences, std::int64_t target,
                       std::int64_t context, bool two_parts, const WordPieces& pieces,
                       const MaskingOptions& options, std::uint32_t seed);

/// A sample of T5: what is read [context], what is written and what it should be [written].
struct T5Sample {
  TokenIds source, written, labels;  // labels: -1 behind the end
  TokenIds loss_mask, source_mask, written_mask;
  bool truncated = false;
};

/// Errors: Fault::Data: more masked runs than sentinels; a text that is longer than `written`.
T5Sample t5_sample(std::span<const TokenIds> sentences, std::int64_t target, std::int64_t context,
                   std::int64_t written, const WordPieces& pieces, const MaskingOptions& options,
                   std::uint32_t seed);

}  // namespace tessera
