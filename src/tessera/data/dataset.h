#pragma once
/// Text files to a vocabulary and a token stream, in one call.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/images.h"
#include "tessera/data/row_labels.h"
#include "tessera/files/text.h"
#include "tessera/token_files/token_files.h"
#include "tessera/token_files/token_stream.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

/// What data can be. Program: samples that a program makes itself.
enum class DataKind { Text, TokenFiles, Pictures, Program };
/// "texts", "token files", "pictures", "samples of a program"
std::string_view to_text(DataKind kind);

/// What a run trains on, and what it validates on.
enum class Part { Train, HeldOut };

/// Where the texts of rows lie in a token stream: one behind another, without anything between.
struct RowTokens {
  std::int64_t columns = 0;        // texts of a row: 1, a document with its end; 2, a source and a
                                   // target; of rows with labels 1 or 2, as they are; 0: the data
                                   // has no rows
  std::vector<std::int64_t> ends;  // of each text in TokenStream::all(), row after row
  std::int64_t train = 0;          // the first so many rows train; the others are held out
  std::string notice;              // what the user is to know of rows that were left out, or empty

  std::int64_t rows() const {
    return columns == 0 ? 0 : static_cast<std::int64_t>(ends.size()) / columns;
  }
  /// A text of a row, by number.
  std::span<const std::int32_t> text(std::span<const std::int32_t> all, std::int64_t row,
                                     std::int64_t column) const;
};

struct EncodedQuestions;  // data/question_rows.h

struct Dataset {
  Vocabulary vocabulary;
  TokenStream tokens;
  std::vector<TextFile> files, held_out_files;  // the second of a text that hold_out took
  std::string
      digest;  // XXH3-128 of the normalised text: a resumed run checks that its data is the same
  // In place of a text; then there are no tokens.
  std::shared_ptr<const TokenFiles> token_files = nullptr;
  std::shared_ptr<const Pictures> pictures = nullptr;
  bool of_program = false;
  RowTokens rows = {};                                          // of tables (data/rows.h)
  RowLabels labels = {};                                        // of rows that have some
  std::shared_ptr<const EncodedQuestions> questions = nullptr;  // in place of a text, too
  /// Of a test part: it does not say what is to be predicted. Labels of rows are kIgnoredLabel
  /// then, others 0.
  bool unlabelled = false;
  /// Of what is held out, where that is files of its own and no part of `digest`.
  std::string held_out_digest = {};

  DataKind kind() const {
    return of_program    ? DataKind::Program
           : token_files ? DataKind::TokenFiles
           : pictures    ? DataKind::Pictures
                         : DataKind::Text;
  }
};

/// Loads text (files/text.h) and makes its vocabulary. Bytes take any file; others must be UTF-8.
/// Learned tokens are those of the part that is not held out, up to the line in which it ends.
Dataset load_dataset(const std::vector<std::string>& paths, const VocabularyChoice& vocabulary,
                     double held_out = TokenStream::kHeldOut);

/// The same with the vocabulary of a model that exists already.
Dataset load_dataset(const std::vector<std::string>& paths, const Vocabulary& vocabulary,
                     double held_out = TokenStream::kHeldOut);

/// A text to test on, all of which is held out, with the vocabulary of a model that exists.
Dataset load_test_text(const std::vector<std::string>& paths, const Vocabulary& vocabulary);

/// Token files as data: their ids are the tokens of the vocabulary.
Dataset token_file_dataset(TokenFiles files, Vocabulary vocabulary);

/// Pictures as data: there are no tokens.
Dataset picture_dataset(Pictures pictures);

/// A program's samples as data, whose task makes them of nothing in the dataset.
Dataset program_dataset(Vocabulary vocabulary, std::string digest);

/// Dataset::digest of the text at `paths`, without a vocabulary.
std::string text_digest(const std::vector<std::string>& paths, VocabularyKind kind);

/// For messages: "the text of 'a.txt' and 2 more files".
std::string name_of(const std::vector<TextFile>& files);

/// Holds the text at `paths` out instead of a part of the training text, all of which then trains.
/// Errors: a character that the vocabulary lacks, with its place.
void hold_out(Dataset& data, const std::vector<std::string>& paths);

}  // namespace tessera
