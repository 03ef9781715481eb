#pragma once
/// Sentences whose words have a tag each, as data: rows of tokens of which some have a label.

#include <string>

#include "tessera/data/rows.h"

namespace tessera {

struct Dataset;
class Vocabulary;
struct VocabularyChoice;

/// Files of tagged words (data/tagged_words.h) with their vocabulary. A sentence is a row of one
/// column; its words are encoded with a blank before each, as they stand within a text: the tokens
/// of transformers with is_split_into_words and, of byte-level tokenizers, add_prefix_space. The
/// first token of a word has the label of its tag, the others kIgnoredLabel (WordLabels::of_tokens).
/// Words that have no token are left out, with a Dataset::notice.
///
/// `choice`: columns, the key of words in JSON lines, and label_column, that of tags, where they
/// are not the usual ones; labels are numbered as load_rows numbers those of rows.
/// Errors: Fault::Data: as of read_tagged_words; a tag that is not known, or a word that the
/// vocabulary cannot spell, with the sentence.
Dataset load_tagged_rows(const RowsChoice& choice, const VocabularyChoice& vocabulary);
/// The same with the vocabulary of a model that exists already.
Dataset load_tagged_rows(const RowsChoice& choice, const Vocabulary& vocabulary);

/// Dataset::digest of these sentences, without a vocabulary.
std::string tagged_rows_digest(const RowsChoice& choice);

}  // namespace tessera
