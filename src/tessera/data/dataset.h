#pragma once
/// The room `data`: what a run learns from: texts, rows of tables, tagged words, questions,
/// pictures; and scores of what was learned.
/// For: from paths to samples by number.
/// Not for: which of these a run has (train/run_data.h), or what a task does with them
/// (models/task.h).
/// Rejected: other scores than those that others print: BLEU is sacreBLEU's, F1 is SQuAD's and
/// seqeval's, computed here and held to theirs.
///
/// Text files to a vocabulary and a token stream, in one call.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tessera/data/data_kind.h"
#include "tessera/data/row_labels.h"
#include "tessera/files/text.h"
#include "tessera/token_files/data_split.h"
#include "tessera/token_files/token_stream.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

/// Where the texts of rows lie in a token stream: one behind another, without anything between.
struct RowTokens {
  std::int64_t columns = 0;        // texts of a row: 1, a document with its end; 2, a source and a
                                   // target; of rows with labels 1 or 2, as they are; 0: the data
                                   // has no rows
  std::vector<std::int64_t> ends;  // of each text in TokenStream::all(), row after row
  std::int64_t train = 0;          // the first so many rows train; the others are held out

  std::int64_t rows() const {
    return columns == 0 ? 0 : static_cast<std::int64_t>(ends.size()) / columns;
  }
  /// A text of a row, by number.
  std::span<const std::int32_t> text(std::span<const std::int32_t> all, std::int64_t row,
                                     std::int64_t column) const;
};

class StreamedText;  // data/streamed_text.h

/// A text, or the texts of rows, as tokens one behind another.
struct Texts {
  TokenStream tokens;
  std::vector<TextFile> files,
      held_out_files;   // the second of what is held out as files of its own
  RowTokens rows = {};  // of tables (data/rows.h) and tagged words (data/tagged_rows.h)
  std::vector<RowLabel> labels = {};  // of each row; empty: rows have none
  /// Of each token 1 where it is to be predicted, else 0; empty: all are.
  std::vector<std::uint8_t> counts = {};
  /// What trains, where it is read while the run goes on; `tokens` are what is held out then.
  std::shared_ptr<const StreamedText> stream = nullptr;
};

struct EncodedQuestions;  // data/question_rows.h
struct Pictures;          // data/images.h
struct TokenFiles;        // token_files/token_files.h

/// Samples that a program makes itself.
struct ProgramSamples {};

struct Dataset {
  /// What samples are made of.
  using Content = std::variant<Texts, std::shared_ptr<const EncodedQuestions>,
                               std::shared_ptr<const TokenFiles>, std::shared_ptr<const Pictures>,
                               ProgramSamples>;

  Vocabulary vocabulary;
  Content content;
  /// XXH3-128 of what `content` was read from, as a text normalised: a resumed run checks that its
  /// data is the same.
  std::string digest;
  /// Of what is held out, where that is files of its own and no part of `digest`.
  std::string held_out_digest = {};
  std::vector<std::string> label_names = {};  // by number; empty: there are none
  /// Of data to test on: it does not say what is to be predicted. Labels of rows are kIgnoredLabel
  /// then, others 0.
  bool unlabelled = false;
  std::string notice = {};  // what the user is to know of rows that were left out, or empty

  DataKind kind() const;
  /// Of data that is no texts: nullptr. texts(): it is some.
  const Texts* find_texts() const { return std::get_if<Texts>(&content); }
  const Texts& texts() const { return std::get<Texts>(content); }
  const EncodedQuestions* questions() const { return find<EncodedQuestions>(); }
  const TokenFiles* token_files() const { return find<TokenFiles>(); }
  const Pictures* pictures() const { return find<Pictures>(); }
  const StreamedText* stream() const {
    const Texts* const found = find_texts();
    return found == nullptr ? nullptr : found->stream.get();
  }
  /// Texts of rows: those of the row's columns, and of its labels.
  bool has_rows() const { return find_texts() != nullptr && texts().rows.columns > 0; }

 private:
  template <typename Of>
  const Of* find() const {
    const auto* const found = std::get_if<std::shared_ptr<const Of>>(&content);
    return found == nullptr ? nullptr : found->get();
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
/// That of the files which a part of `texts` was read from.
std::string name_of_part(const Texts& texts, DataPart part);

/// Holds the text at `paths` out instead of a part of the training text, all of which then trains.
/// Errors: a character that the vocabulary lacks, with its place.
void hold_out(Dataset& data, const std::vector<std::string>& paths);

}  // namespace tessera
