#pragma once
/// Sentences whose words have a tag each, as tokens, and samples of them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/samples.h"
#include "tessera/data/tagged_words.h"
#include "tessera/data/vocabulary.h"

namespace tessera {

/// Sentences one behind another. A token has the class of its word where it is the word's first
/// one, else kIgnoredLabel.
struct TaggedRows {
  std::vector<std::string> names;         // of tags; the class of a tag is its place here
  std::vector<std::int32_t> ids, labels;  // of all tokens
  std::vector<std::int64_t> ends;         // of each sentence
  std::int64_t train = 0;           // the first so many sentences train; the others are held out
  std::int64_t without_tokens = 0;  // words, which are left out

  std::int64_t rows() const { return static_cast<std::int64_t>(ends.size()); }
  std::int64_t begin(std::int64_t row) const {
    return row == 0 ? 0 : ends[static_cast<std::size_t>(row - 1)];
  }
  /// The tokens of a sentence, and their labels; at most `most`.
  std::span<const std::int32_t> row_ids(std::int64_t row, std::int64_t most) const;
  std::span<const std::int32_t> row_labels(std::int64_t row, std::int64_t most) const;
};

/// Each word is encoded with a blank before it, as it stands within a text: transformers' tokens of
/// words with add_prefix_space. `names` are those of a model that exists, or empty: those of all
/// sentences, numbers in their order, else sorted. The last of `train` are held out where `valid`
/// is empty.
///
/// Errors: Fault::Data: a tag that is not among `names`; a word that the vocabulary cannot spell.
TaggedRows encode_tagged_rows(std::span<const TaggedSentence> train,
                              std::span<const TaggedSentence> valid, double held_out,
                              const Vocabulary& vocabulary, std::vector<std::string> names = {});

struct TaggedSamplesOptions {
  std::int64_t context = 0;  // positions of a sample: 3 or more
  PairTokens special{};
  std::uint64_t seed = 0;  // of the order
  std::int64_t most = 0;   // held out: the first so many; 0: all
  bool types = false;      // the model has types of tokens
};

/// Samples of the form [CLS] tokens [SEP] [PAD]..., a sentence each; what does not fit is left out.
/// Those that train are in an order that is drawn anew for each epoch. Inputs of a batch of n
/// samples, all i32 [n, context]: ids; mask, 0 at padding, else 1; types, all 0, where asked for;
/// labels, kIgnoredLabel at special tokens too. The rows must outlive the samples.
/// Errors: Fault::Data: no sentence in the part.
std::unique_ptr<Samples> tagged_samples(const TaggedRows& rows, bool held_out,
                                        const TaggedSamplesOptions& options);

}  // namespace tessera
