#pragma once
/// Preferences as data: a row each.

#include <string>

#include "tessera/data/rows.h"

namespace tessera {

/// Texts whose rows are preferences (data/preferences.h): the prompt with the chosen answer, the
/// prompt with the other one. Texts::counts: the tokens of answers, or what choice.dialogues says.
/// `vocabulary` is that of a tokenizer. Messages are written with its chat template; a text stands
/// behind what the tokenizer puts before one, and is followed by its end-of-text token. Each line of
/// a file is a preference.
///
/// Errors: Fault::Data, with file and line: as of preference_of and DialogueEncoder; a preference
/// that is longer than the context, where these are refused.
Dataset load_preferences(const RowsChoice& choice, const Vocabulary& vocabulary);
Dataset load_preferences(const RowsChoice& choice, const VocabularyChoice& vocabulary);

}  // namespace tessera
