#pragma once
/// Rows of tables that are a text and its choices, and a label that says the right one, as data.

#include <string>

#include "tessera/data/rows.h"

namespace tessera {

/// `choice`: columns, that of the text, and those that begin each choice, joined with blanks;
/// choice_columns, one of lists of choices (choices.h), or one for each choice, of which the last
/// may be empty; label_column, whose labels right_choice reads.
///
/// Texts::rows has the text of each row and behind it its choices, as many in every row: those that
/// a row lacks are empty. RowLabel::number counts choices from 0. There are no label_names.
///
/// Errors: Fault::Data: as of read_table; with file and line: as of choices.h; more choices than
/// most_choices; a text that the vocabulary cannot spell, or that has no token; of rows that train
/// or validate, no label.
Dataset load_choices(const RowsChoice& choice, const VocabularyChoice& vocabulary);
/// The same with the vocabulary of a model that exists already.
Dataset load_choices(const RowsChoice& choice, const Vocabulary& vocabulary);

/// Dataset::digest of these rows, without a vocabulary.
std::string choices_digest(const RowsChoice& choice);

}  // namespace tessera
