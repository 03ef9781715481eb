#pragma once
/// Samples of masked sentences from token files, for models that learn both directions of a text.

#include <cstdint>
#include <memory>

#include "tessera/token_files/samples.h"
#include "tessera/token_files/token_files.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

struct SentencePairsOptions {
  TokenSampleChoice choice;           // choice.vocabulary: the model's, its ids are below
  std::int64_t masked_positions = 0;  // as of MaskedPairsOptions
  std::int64_t most = 0;              // validation: the first so many samples; 0: all
};

/// megatron-core's samples for BERT (BERTMaskedWordPieceDataset with its usual settings: 15 % of
/// the tokens in runs of up to three words, one sample in ten shorter). `next` is whether the two
/// parts are exchanged. Inputs of a batch are those of masked_pairs(); beyond the end of validation
/// are samples of padding alone.
///
/// `vocabulary` is the tokenizer of the files. A token that begins with ## goes on a word.
/// Errors: Fault::Usage: no tokenizer, or one without [PAD], [CLS], [SEP] and [MASK];
/// masked_positions that have no room for all that is masked; a context of which nothing is.
/// Fault::Data: as of SentenceDataset.
std::unique_ptr<Samples> sentence_pairs(const TokenFiles& files, const Vocabulary& vocabulary,
                                        const SentencePairsOptions& options);

}  // namespace tessera
