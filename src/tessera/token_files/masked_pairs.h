#pragma once
/// Samples for models that learn both directions of a text: parts of it, in which some tokens are
/// masked, and, where there are two, the question how they belong together.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/token_files/sampler.h"
#include "tessera/token_files/samples.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

/// Tokens that no text has. Where the vocabulary has none of its own (Vocabulary::pair_tokens),
/// their ids follow those of the text, in this order: [PAD], [CLS], [SEP], [MASK].
enum class SpecialToken { Pad, Cls, Sep, Mask };
inline constexpr std::int64_t kSpecialTokens = 4;

/// What a sample is made of, and what is asked of its parts.
enum class SampleParts {
  Elsewhere,  // A and B: does B follow A in the text, or is it from elsewhere?
  Swapped,    // A and B, which follow each other: are they in the order of the text, or swapped?
  One,        // A alone
};
/// A [CLS], a [SEP] behind each part, and a token in each.
constexpr std::int64_t least_context(SampleParts parts) {
  return parts == SampleParts::One ? 3 : 5;
}

struct MaskedPairsOptions {
  std::int64_t context = 0;           // positions of a sample: at least least_context(parts)
  std::int64_t vocabulary = 0;        // of the text: its ids are below
  std::int64_t masked_positions = 0;  // the most that are masked in a sample; 0: see below
  std::uint64_t seed = 0;
  SampleOrder order = SampleOrder::ShuffledWindows;
  std::optional<PairTokens> special = {};  // of a vocabulary that has its own
  SampleParts parts = SampleParts::Elsewhere;
  std::int64_t longest_run = 1;        // words that are masked together; 1: tokens, see below
  std::vector<bool> begins_word = {};  // of each id; where longest_run is above 1
  bool masks_alone = false;            // all tokens that are to be predicted are replaced by [MASK]
};

/// Of each id of a vocabulary, whether a word begins with it: with a blank, or, of word pieces,
/// without ##. Of a tokenizer that marks no words, all do.
std::vector<bool> word_begins(const Vocabulary& vocabulary);

/// Samples of the form [CLS] A [SEP] B [SEP] [PAD]..., or of one part, [CLS] A [SEP] [PAD]... Each
/// is a pure function of the seed and its number; `tokens` must outlive them.
///
/// A begins where a window of context - 3 tokens does (token_files/sampler.h); B follows A in the
/// text, or, with probability 1/2, comes from elsewhere in it, or is swapped with A. A and B
/// together fill the sample, but in one of ten, which has a random length. A alone is a window of
/// context - 2 tokens. 15 % of these tokens are to be predicted, at least one: of them 80 % are
/// replaced by [MASK], 10 % by a random token of the text's vocabulary, and 10 % are left as they
/// are. Samples of later epochs are masked otherwise. With longest_run = m above 1 they are runs of
/// 1 to m words, of n words with a probability proportional to 1 / n.
///
/// Inputs of a batch of n samples, all i32:
///   ids, mask [n, context]          tokens; 0 at padding, else 1
///   types [n, context]              1 in the second part and its [SEP], else 0
///   labels [n, context]             what was there, where it is to be predicted; else the ignored
///                                   label
///   next [n]                        0: B follows A; 1: it does not, or the two are swapped
/// types and next are there of two parts alone.
/// With masked_positions = k above 0, at most k tokens are masked, and there are instead
///   masked_positions, labels [n, k] where they are, ascending, and what was there; unused ones at
///                                   the end are position 0 with kIgnoredLabel
///
/// Errors:  Fault::Data: fewer than context - 2 tokens, or context - 1 of one part.
/// Source:  Devlin et al. 2018, arXiv 1810.04805, section 3.1 and appendix A.1; lengths as in the
///          code that its authors published. Swapped: Lan et al. 2019, arXiv 1909.11942, section
///          3.1, as are runs of words (m = 3). One: "full sentences" of Liu et al. 2019, arXiv 1907.11692, section 4.2.
std::unique_ptr<Samples> masked_pairs(std::span<const std::int32_t> tokens,
                                      const MaskedPairsOptions& options);

/// The same for validation: samples in which every token is once, in their order. With
/// probability 1/2 two samples have exchanged their Bs, or a sample has swapped its parts. The last
/// sample may be shorter; where it has a single token, `next` is kIgnoredLabel. Beyond the last are
/// samples of padding alone, with nothing that counts. The seed has no influence. `most`: the first
/// so many samples; 0: all. Errors: Fault::Data: no tokens.
std::unique_ptr<Samples> fixed_masked_pairs(std::span<const std::int32_t> tokens,
                                            const MaskedPairsOptions& options, std::int64_t most);

}  // namespace tessera
