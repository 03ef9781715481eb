#pragma once
/// The samples of one pair of token files that has a sequence for each sentence, as Megatron-LM
/// makes them for BERT.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/data/gpt_dataset.h"
#include "tessera/data/masked_words.h"

namespace tessera {

/// Samples by number: two runs of sentences that stand one behind the other, with masked words. All
/// functions may be called from any thread.
class SentenceDataset {
 public:
  /// Of documents, not of sequences, are the parts of choice.split made. Errors: Fault::Data: files
  /// with one sequence a document; a part in which no document has a sample.
  SentenceDataset(std::shared_ptr<const IndexedDataset> files, const GptDatasetChoice& choice,
                  std::vector<std::string>& notices);

  /// Samples that there are; at least as many as are wanted.
  std::int64_t size() const { return map_->elements() / 3; }
  /// Those of one epoch.
  std::int64_t epoch() const { return epoch_; }
  const IndexedDataset& files() const { return *files_; }

  /// Errors: as of IndexedDataset::read.
  BertSample read(std::int64_t sample, const WordPieces& pieces) const;

 private:
  std::shared_ptr<const IndexedDataset> files_;
  GptDatasetChoice choice_;
  std::optional<IntegerArray> map_;
  std::int64_t epoch_ = 0;
};

}  // namespace tessera
