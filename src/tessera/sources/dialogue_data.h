#pragma once
/// Dialogues as the data of a run of a model that predicts the next token.

#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/data/rows.h"

namespace tessera {

/// Whether the rows of `paths` are dialogues: config.text_column has lists of messages, or a prompt
/// to the completion in config.target_column.
bool are_dialogues(const RunConfig& config, const std::vector<std::string>& paths);

/// Finds the keys of dialogues that nobody told by their usual names, in the first file; packing
/// that nobody told becomes bfd, or none where the family cannot keep dialogues apart.
void find_dialogues(RunConfig& config);

/// Errors: Fault::Data: a file that is read as text is dialogues in one JSON list.
void refuse_listed_dialogues(const RunConfig& config);

/// Errors: Fault::Usage: packing wrapped; a chat-date that is no day.
DialogueRules dialogue_rules(const RunConfig& config);

}  // namespace tessera
