#pragma once
/// The samples of a causal model from one pair of token files.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/token_files/data_split.h"
#include "tessera/token_files/gpt_indices.h"
#include "tessera/token_files/index_cache.h"
#include "tessera/token_files/indexed_dataset.h"

namespace tessera {

/// Of which part of the files samples are made, and how.
struct GptDatasetChoice {
  DataPart part = DataPart::Train;
  std::string split{kUsualSplit};  // parse_split; empty: all of the files is this part
  std::int64_t context = 0, vocabulary = 0;
  std::optional<std::int64_t> samples = std::nullopt;  // wanted; none: those of one epoch
  std::uint32_t seed = 1234;
  /// Where sample indices are kept. Empty: in PREFIX/cache/GPTDataset_indices, or that of another
  /// dataset, as Megatron-LM does.
  std::string cache = {};
  /// Of samples of sentences: tokens that a decoder writes (T5); 0: there is none (BERT).
  std::int64_t written = 0;
};

/// Of the part that is chosen: which sequences it has, and how many passes over them it takes.
struct GptPart {
  GptIndexRequest request;
  GptIndexPlan plan;

  std::int64_t samples_in_epoch() const { return (plan.tokens_per_epoch - 1) / request.context; }
};
/// Errors: Fault::Data: the part has fewer than two tokens, or not one sample.
GptPart gpt_part(const IndexedDataset& files, const GptDatasetChoice& choice);

/// Samples by number. Which tokens each has is decided once and kept in files, under the names and
/// in the form of megatron-core, so that either program goes on with what the other one made. All
/// functions may be called from any thread.
class GptDataset {
 public:
  /// Takes indices from the cache, or makes them and puts them there. What the user is to know is
  /// added to `notices`, as that they could not be kept. Indices that do not fit the files, or that
  /// are older, are made anew.
  /// Errors: as of gpt_part.
  GptDataset(std::shared_ptr<const IndexedDataset> files, const GptDatasetChoice& choice,
             std::vector<std::string>& notices);

  /// Samples that there are; at least as many as are wanted.
  std::int64_t size() const { return part_.plan.samples; }
  /// Those of one epoch.
  std::int64_t epoch() const { return part_.samples_in_epoch(); }
  const GptIndexPlan& plan() const { return part_.plan; }
  const GptIndices& indices() const { return *indices_; }
  const IndexedDataset& files() const { return *files_; }
  /// What it keeps in files.
  static IndexSet index_set(const std::string& prefix, const GptDatasetChoice& choice);

  /// The context + 1 tokens of a sample. Errors: as of IndexedDataset::read; Fault::Data: indices
  /// that do not fit the files.
  void read(std::int64_t sample, std::span<std::int32_t> out) const;

 private:
  std::shared_ptr<const IndexedDataset> files_;
  std::int64_t vocabulary_ = 0;
  GptPart part_;
  std::optional<GptIndices> indices_;
};

}  // namespace tessera
