#pragma once
/// Rows of tables as data: texts that are documents, pairs of a source and a target, or texts with
/// a label.

#include <ctime>
#include <string>
#include <vector>

#include "tessera/data/dialogue_choices.h"
#include "tessera/data/row_labels.h"
#include "tessera/files/table_file.h"
#include "tessera/token_files/token_stream.h"

namespace tessera {

struct Dataset;
class Vocabulary;
struct VocabularyChoice;

/// How dialogues are read (data/dialogue_rows.h).
struct DialogueRules {
  DialogueLoss loss = DialogueLoss::Answers;
  bool cut_long = false;     // those longer than the context, which is else an error
  std::int64_t context = 0;  // positions of a sample; 0: not known
  std::tm day = {};          // of strftime_now
};

/// Which texts of which files.
struct RowsChoice {
  std::vector<std::string> paths = {};  // files, and folders of files, as load_text takes them
  std::vector<std::string> valid_paths = {};     // to hold out; empty: the last rows of `paths`
  std::vector<std::string> columns = {};         // one: documents; two: sources and targets
  std::vector<std::string> choice_columns = {};  // of rows with choices (data/choice_rows.h)
  std::int64_t most_choices = 0;                 // of such a row; 0: any number
  /// Of labels; empty: rows have none. With one, texts are no documents. Where a row may have
  /// several (data/label_kind.h), also columns with commas between.
  std::string label_column = {};
  std::string label_separator = ",";           // between several labels of a cell
  std::vector<std::string> known_labels = {};  // of a model that exists, by number
  bool keeps_labels = false;  // others than known_labels are refused, also in rows that train
  std::int64_t classes = 0;   // what the user gave as the number of labels; 0: nothing
  const LabelKind* labels = &kClassLabels;
  TableOptions table = {};
  double held_out = TokenStream::kHeldOut;  // share of the rows, where there are no valid_paths
  /// All of `paths` is held out, to test a model that exists, and may lack labels: the column is in
  /// none of the files, or a label is a word for none (label_rules.h). Such rows have
  /// kIgnoredLabel; where all are so, Dataset::unlabelled.
  bool tests = false;
  /// False: labels are not looked at, as rows to predict need none; all rows have kIgnoredLabel.
  bool reads_labels = true;
  bool needs_texts = false;  // a row of which a text is empty is an error
  DialogueRules dialogues = {};
  bool some_without_answer = false;  // of questions to test on: the model may find none

  /// How many of `count` rows of `paths` train.
  std::int64_t trains(std::int64_t count) const {
    return tests ? 0 : valid_paths.empty() ? count_to_train(count, held_out) : count;
  }
};

/// The files have the column of labels, and it is to be read. Errors: Fault::Data: of files to test
/// on, some have it and some have not.
bool have_labels(const std::vector<std::string>& paths, const RowsChoice& choice);

/// What stands behind each document: the token that ends one, or a new line. Errors: Fault::Data:
/// the vocabulary has neither.
std::vector<std::int32_t> document_end(const Vocabulary& vocabulary);

/// The tokens of a part that trains, and those held out behind them.
TokenStream stream_of(const RowsChoice& choice, std::vector<std::int32_t> train,
                      std::vector<std::int32_t> held_out);

/// Texts with their vocabulary, which is made of the rows that train, or, of characters, of all of
/// `paths`. Texts::rows says where each text lies in Texts::tokens. Behind each document is
/// its end: end_of_document() of a tokenizer that has one, else a new line. Documents without a
/// text are left out, with a Dataset::notice. Texts with labels stay as they are. Labels,
/// without blanks around them, have the numbers of known_labels, where the rows of `paths` have no
/// others, else those of sorted_label_names of these rows. Rows whose label is a word for none
/// (label_rules.h) are left out, but of files to test on, with a Dataset::notice.
///
/// Errors: Fault::Data: as of read_table; no document with a text; a text that the vocabulary
/// cannot spell, with its line and column; nothing that can end a document; a row without a
/// label; labels that are no classes (require_classes); a held-out row with another label; of files
/// to test on, some with the column of labels and some without.
Dataset load_rows(const RowsChoice& choice, const VocabularyChoice& vocabulary);
/// The same with the vocabulary of a model that exists already.
Dataset load_rows(const RowsChoice& choice, const Vocabulary& vocabulary);

/// Dataset::digest of these rows, without a vocabulary.
std::string rows_digest(const RowsChoice& choice);

}  // namespace tessera
