#pragma once
/// Samples of token files in which spans of text are to be written, for models that write one text
/// from another.

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/token_files/samples.h"
#include "tessera/token_files/token_files.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

/// The tokens <extra_id_0>, <extra_id_1> and so on of a tokenizer, in this order; of others none.
std::vector<std::int32_t> sentinels_of(const Vocabulary& vocabulary);

struct SentenceSpansOptions {
  /// choice.context: tokens of what is read; choice.written: of what is written.
  TokenSampleChoice choice;
  std::int32_t pad = 0, start = 0, end = 0;  // of what is written, start and end
  std::int64_t most = 0;                     // validation: the first so many samples; 0: all
};

/// megatron-core's samples for T5 (T5MaskedWordPieceDataset with its usual settings: 15 % of the
/// tokens in runs of up to ten words, whose lengths are drawn geometrically, one sample in ten
/// shorter). What is read is a text in which a sentinel stands for each run; what is written are
/// the sentinels, each with its run behind it. Inputs of a batch are those of translations: source,
/// ids, which begin with the start, and labels. Beyond the end of validation are samples of padding
/// alone.
///
/// `vocabulary` is the tokenizer of the files. Its tokens <extra_id_0>, <extra_id_1> and so on are
/// the sentinels, in this order. A token that begins with ## goes on a word.
/// Errors: Fault::Usage: no tokenizer, or one without sentinels; no room for what a sample of all
/// tokens has to be written. Fault::Data: as of SentenceDataset; while samples are drawn, one that
/// has more runs than there are sentinels, or more to write than there is room for.
std::unique_ptr<Samples> sentence_spans(const TokenFiles& files, const Vocabulary& vocabulary,
                                        const SentenceSpansOptions& options);

}  // namespace tessera
