#pragma once
/// Files of sentences whose words have a tag each: CoNLL's, and JSON lines.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/table_file.h"

namespace tessera {

/// A sentence; as many tags as words, or none where they may be lacking.
struct TaggedSentence {
  std::vector<std::string> words, tags;
  std::string path = {};  // of its file
  std::int64_t line = 0;  // where it begins, from 1
  friend bool operator==(const TaggedSentence&, const TaggedSentence&) = default;
};

struct TaggedWordsOptions {
  /// Keys of JSON lines. Empty: the first that the first line has of "tokens" and "words", and of
  /// "ner_tags", "tags", "pos_tags" and "chunk_tags".
  std::string words_key = {}, tags_key = {};
  std::optional<TableFormat> format = {};  // JsonLines, or another: CoNLL; none: by the name
  /// A file whose first word, or first object, has no tags has words alone.
  bool may_lack_tags = false;
};

/// Reads a file: JSON lines where its name ends in .jsonl or .json, else CoNLL's form, whatever it
/// is called.
///
/// CoNLL: a line for each word, the word first and its tag last; what is between is passed over.
/// Tabs are between columns where a line has one, else blanks. Empty lines end sentences. Lines
/// that begin with -DOCSTART-, between documents, and comments (conll_comments.h) are passed over.
/// JSON lines: an object in each line with a list of words and one of tags, which are texts or
/// whole numbers: {"tokens": ["EU", "rejects"], "ner_tags": ["B-ORG", "O"]}. Sentences without a
/// word are passed over.
///
/// Errors: Fault::Data: as of read_file; with the line: a word without a tag, a line that
/// may be a comment or a word, a first column that numbers the words, another number of
/// tags than of words, a key that is missing or has something else, bytes that are not UTF-8, no
/// JSON; no sentence at all.
std::vector<TaggedSentence> read_tagged_words(const std::string& path,
                                              const TaggedWordsOptions& options = {});

/// The same of bytes; `path` says the form, and is for messages.
std::vector<TaggedSentence> parse_tagged_words(std::string_view bytes, const std::string& path,
                                               const TaggedWordsOptions& options = {});

}  // namespace tessera
