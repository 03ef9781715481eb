#pragma once
/// The samples of one pair of token files that has a sequence for each sentence, as Megatron-LM
/// makes them for BERT and T5.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/token_files/gpt_dataset.h"
#include "tessera/token_files/masked_words.h"
#include "tessera/token_files/token_files.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera {

/// What Megatron-LM's two datasets of sentences do not share.
struct SentenceKind {
  const char* name;                   // of its class
  std::int64_t special = 0;           // tokens around those of the text
  std::int64_t fewest_sentences = 1;  // of a sample: 2 where it is cut into two parts
  MaskingOptions masking = {};        // its usual settings

  /// Of a sample that takes the whole context; may be 0.
  std::int64_t most_masked(std::int64_t context) const {
    return static_cast<std::int64_t>(masking.probability * static_cast<double>(context - special));
  }
};
/// BERT's; where the samples are for a decoder that writes so many tokens, T5's.
const SentenceKind& sentence_kind(std::int64_t written);

/// Which pieces go on a word, for WordPieces: those that begin with ##.
std::function<bool(std::int32_t)> pieces_that_continue(const Tokenizer& tokenizer);

/// What a sample is made of.
struct SentenceSample {
  std::vector<TokenIds> sentences = {};
  std::int64_t target = 0;  // tokens that are wanted of it
  std::uint32_t seed = 0;   // of what is masked
};

/// Samples by number: sentences that stand one behind the other. All functions may be called from
/// any thread.
class SentenceDataset {
 public:
  /// Takes the map of samples from the cache, or makes it and puts it there, as GptDataset does. Of
  /// documents, not of sequences, are the parts of choice.split made. Errors: Fault::Data: files
  /// with one sequence a document; a part in which no document has a sample.
  SentenceDataset(std::shared_ptr<const IndexedDataset> files, const GptDatasetChoice& choice,
                  std::vector<std::string>& notices);

  /// Samples that there are; at least as many as are wanted.
  std::int64_t size() const { return map_->elements() / 3; }
  /// Those of one epoch.
  std::int64_t epoch() const { return epoch_; }
  const IndexedDataset& files() const { return *files_; }
  /// What it keeps in files.
  static IndexSet index_set(const std::string& prefix, const GptDatasetChoice& choice);

  /// Errors: as of IndexedDataset::read; Fault::Data: a map that does not fit the files.
  SentenceSample read(std::int64_t sample) const;

 private:
  std::shared_ptr<const IndexedDataset> files_;
  GptDatasetChoice choice_;
  std::optional<IntegerArray> map_;
  std::int64_t epoch_ = 0;
};

/// How many samples one pass over the part has.
std::int64_t sentence_samples_in_epoch(const TokenFiles& files, const TokenSampleChoice& choice);
/// As TokenFiles::order_text.
std::string sentence_sample_order(const TokenFiles& files, const TokenSampleChoice& choice);

}  // namespace tessera
