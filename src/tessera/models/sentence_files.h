#pragma once
/// What tasks on token files of sentences share.

#include "tessera/models/config.h"
#include "tessera/models/task.h"
#include "tessera/token_files/token_files.h"

namespace tessera {

/// The samples of a model that reads `context` tokens and writes `written` (0: it writes none).
TokenSampleChoice sentence_choice(const ModelConfig& config, DataPart part,
                                  const SampleChoices& choices, std::int64_t context,
                                  std::int64_t written = 0);

/// Task::token_files.
TokenFileUse sentence_file_use(const ModelConfig& config, std::int64_t context,
                               std::int64_t written = 0);

}  // namespace tessera
