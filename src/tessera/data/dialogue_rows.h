#pragma once
/// Dialogues as data: a row each.

#include <string>

#include "tessera/data/rows.h"

namespace tessera {

/// Texts whose rows are dialogues of choice.columns, with Texts::counts. `vocabulary` is that of a
/// tokenizer that has a chat template. Each line of a file is a dialogue.
///
/// Errors: Fault::Data, with file and line: as of dialogue_of and DialogueEncoder; a dialogue that
/// is longer than the context, where these are refused.
Dataset load_dialogues(const RowsChoice& choice, const Vocabulary& vocabulary);
Dataset load_dialogues(const RowsChoice& choice, const VocabularyChoice& vocabulary);

}  // namespace tessera
