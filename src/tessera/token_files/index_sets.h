#pragma once
/// What indices megatron-core keeps, under which names, and what it says that they depend on.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/token_files/blend.h"
#include "tessera/token_files/gpt_dataset.h"
#include "tessera/token_files/index_cache.h"

namespace tessera {

// A description is the JSON text that megatron-core writes and hashes. It names a tokenizer too:
// here megatron-core's NullTokenizer, which knows numbers alone.

/// Of a causal model: the documents, the samples and their order.
IndexSet gpt_index_set(const std::string& prefix, const GptDatasetChoice& choice);

/// Of samples of sentences: which sentences each has.
IndexSet sentence_index_set(const std::string& prefix, const GptDatasetChoice& choice);

/// How datasets are blended.
struct BlendDescription {
  std::vector<std::string> datasets = {};  // their descriptions
  DataPart part = DataPart::Train;
  std::vector<double> weights = {};      // normalised; empty: all samples of all datasets are taken
  std::vector<std::int64_t> sizes = {};  // of the datasets
  std::int64_t size = 0;                 // samples of the blend
};
IndexSet blend_index_set(const BlendDescription& blend, const std::string& folder);
/// The blend from files in `folder`, or made and put there; megatron-core keeps it only where it is
/// told a folder. Empty: it is made, and not kept.
BlendIndices kept_blend(const BlendDescription& blend, const std::string& folder,
                        std::vector<std::string>& notices);

}  // namespace tessera
