#pragma once
/// What texts are written from, of a request that is fitted to its model.

#include <cstdint>
#include <vector>

#include "tessera/apps/sample_request.h"
#include "tessera/config/problems.h"
#include "tessera/models/config.h"
#include "tessera/models/task.h"
#include "tessera/tokenizers/vocabulary.h"
#include "tessera/train/written_sample.h"

namespace tessera {

/// What depends on the task of the run: what cannot be done with it, and what is left open.
void fit_to_task(SampleRequest& request, const TextWriting& writing, const ModelConfig& model,
                 Problems& problems);

/// Of a folder of Hugging Face, what is continued begins with what the tokenizer puts before each
/// text, as <s>.
void begin_as_folder(const Vocabulary& vocabulary, const TextWriting& writing,
                     const std::vector<GivenText>& given, std::vector<Beginning>& beginnings);

/// The caches of a model that continues texts have room for these alone, and for `tokens` behind
/// them: a folder's context is as long as the longest text that it was trained for.
void shorten_context(ModelConfig& model, TextWriting& writing,
                     const std::vector<Beginning>& beginnings, std::int64_t tokens);

}  // namespace tessera
