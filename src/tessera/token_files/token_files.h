#pragma once
/// The room `token_files`: Megatron-LM's .bin and .idx, and the samples that are made of tokens.
/// For: the same samples in the same order as megatron-core, with the same cached indices.
/// Not for: texts and tables (data).
/// Rejected: mapped files (files/file.h says why). An order of samples that does not depend on the
/// number of steps, as texts have: a run could then not be compared with one of Megatron-LM.
/// Looking at all ids beforehand: files may have terabytes, so an id is checked when it is drawn.
///
/// Token files as the data of a run: one pair or several that are blended, and how they are split
/// into parts.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/token_files/blend.h"
#include "tessera/token_files/gpt_dataset.h"

namespace tessera {

/// The words name token files: PREFIX of PREFIX.bin and PREFIX.idx, several of them, or weights and
/// prefixes by turns. False: there are none, and they are paths of texts. Errors: Fault::Usage:
/// some are token files and others are not; as of parse_blend.
bool names_token_files(std::span<const std::string> words);

/// Files that are blended, in the order given.
struct TokenSource {
  std::vector<std::shared_ptr<const IndexedDataset>> files;
  std::vector<double> weights;  // as given, one for each of the files; empty: none

  std::int64_t num_tokens() const;
};

/// Errors: as of parse_blend and IndexedDataset; a file that is not there.
TokenSource open_token_source(std::span<const std::string> words);

/// All that a run is given.
struct TokenFiles {
  TokenSource train, valid;        // valid: empty where it is a part of train
  std::string split{kUsualSplit};  // of train; unused where valid is a source of its own
  std::string cache;               // GptDatasetChoice::cache

  bool valid_is_apart() const { return !valid.files.empty(); }
  const TokenSource& source_of(DataPart part) const;
  /// Some sequence of the files is in the part.
  bool has(DataPart part) const;
  /// Of one pass over a part: what TokenSamples::epoch() is, without making indices.
  std::int64_t samples_in_epoch(DataPart part, std::int64_t context) const;
  /// How many passes over the files `samples` of a part take, and which are shuffled together: two
  /// runs of the same seed have their samples in the same order where it is the same text.
  std::string order_text(DataPart part, std::int64_t context, std::int64_t samples) const;
  /// XXH3-128 of indices, weights and split.
  std::string digest() const;
};

struct TokenSampleChoice {
  DataPart part = DataPart::Train;
  std::int64_t context = 0, vocabulary = 0;
  std::optional<std::int64_t> samples = std::nullopt;  // wanted; none: those of one epoch
  std::uint32_t seed = 1234;
  std::int64_t written = 0;  // as of GptDatasetChoice
};

/// What each file of `source` is asked for.
std::vector<GptDatasetChoice> choices_of_files(const TokenFiles& files, const TokenSource& source,
                                               const TokenSampleChoice& choice);

}  // namespace tessera
