#pragma once
/// Which sentences make a sample of a model that learns masked words, as Megatron-LM decides it.

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/function_ref.h"
#include "tessera/token_files/npy.h"

namespace tessera {

struct SentenceMapRequest {
  std::int64_t most_tokens = 0;  // of a sample, special tokens not counted: context - 3 for BERT
  std::int64_t fewest_sentences = 1;    // of a sample: 2 where it is cut into two parts
  double short_probability = 0.1;       // of samples that are to have fewer tokens
  std::optional<std::int64_t> samples;  // wanted; none: those of one epoch
  std::uint32_t seed = 1234;
};

/// Takes the first sentence of a document, and the lengths of all of its sentences.
using OnDocument = FunctionRef<void(std::int64_t first, std::span<const std::int32_t> lengths)>;
/// Hands all documents on, in their order; called once for each epoch.
using WalkDocuments = FunctionRef<void(OnDocument on_document)>;

/// Samples: rows of (first sentence, one past the last, tokens that are wanted), shuffled: u32, or
/// u64 where there are more than 2^32 - 1 `sentences`. Epochs are begun until there are as many as
/// are wanted, and finished.
///
/// A document with too few sentences, or with several of which one has more than 512 tokens, has no
/// sample. Equal to megatron-core's. Errors: Fault::Data: no document has a sample.
IntegerArray sentence_map(const SentenceMapRequest& request, std::int64_t sentences,
                          WalkDocuments walk);

/// How many rows the map has, without making it. Errors: as of sentence_map.
std::int64_t sentence_map_size(const SentenceMapRequest& request, WalkDocuments walk);

}  // namespace tessera
