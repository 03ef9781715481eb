#pragma once
/// Files of sample indices, as megatron-core keeps them: which name they have, and what is in them.

#include <optional>
#include <string>
#include <vector>

#include "tessera/data/gpt_dataset.h"

namespace tessera {

/// What the indices depend on, as the JSON text that megatron-core writes and hashes. It names a
/// tokenizer too, on which they do not depend: megatron-core's NullTokenizer, which knows numbers
/// alone.
std::string gpt_description(const std::string& prefix, const GptDatasetChoice& choice);

/// FOLDER/HASH-GPTDataset-PART-, to which document_index.npy and the others are added.
std::string gpt_cache_base(const std::string& prefix, const GptDatasetChoice& choice);

/// The indices that lie in files, of this tokenizer or another. None: not all files are there, they
/// do not fit `plan` and the number of sequences, or they are older than the token files; then
/// `notices` says so.
std::optional<GptIndices> cached_gpt_indices(const std::string& prefix,
                                             const GptDatasetChoice& choice,
                                             const GptIndexPlan& plan, std::int64_t sequences,
                                             std::vector<std::string>& notices);

/// Writes the files; each appears when it is complete, and the description last. Where that fails,
/// `notices` says so.
void keep_gpt_indices(const std::string& prefix, const GptDatasetChoice& choice,
                      const GptIndices& indices, std::vector<std::string>& notices);

}  // namespace tessera
