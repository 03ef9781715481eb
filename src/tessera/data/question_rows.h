#pragma once
/// Questions about texts as tokens, and samples of them: each long text in several windows.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/questions.h"
#include "tessera/data/rows.h"
#include "tessera/files/text.h"
#include "tessera/token_files/data_split.h"
#include "tessera/token_files/samples.h"
#include "tessera/tokenizers/text_frame.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera {

struct Dataset;
class Vocabulary;
struct VocabularyChoice;

/// Tokens [first, last] of a context; none: first is below 0.
struct TokenRange {
  std::int64_t first = -1, last = -1;
  bool none() const { return first < 0; }
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

/// Questions as data.
struct EncodedQuestions {
  struct Context {
    std::string text;
    SpannedIds tokens;
  };
  struct Entry {
    Question question;  // its context is a number in `contexts`
    std::vector<std::int32_t> ids;
    TokenRange answer;  // of the first answer: those that have a part of it
  };
  std::vector<Context> contexts;
  std::vector<Entry> all;
  std::vector<TextFile> files = {};
  std::int64_t train = 0;     // the first so many train; the others are held out
  bool some_without = false;  // some have no answer: SQuAD 2.0
};

/// Files of questions (data/questions.h) with their vocabulary; blanks before a question are left
/// out. Dataset::content has them. Of `choice`, the paths, held_out and those of tests count;
/// questions to test on of which none has an answer are Dataset::unlabelled.
/// Errors: Fault::Data: as of read_questions; a text that the vocabulary cannot spell, or a
/// tokenizer whose tokens cannot be found in the text.
Dataset load_questions(const RowsChoice& choice, const VocabularyChoice& vocabulary);
Dataset load_questions(const RowsChoice& choice, const Vocabulary& vocabulary);
/// Dataset::digest of these questions, without a vocabulary.
std::string questions_digest(const RowsChoice& choice);

/// As require_ids, of all contexts and questions.
void require_question_ids(const EncodedQuestions& questions, std::int64_t vocabulary,
                          std::string_view where);

/// A part of a context that a sample has, with its question before it.
struct QuestionWindow {
  std::int64_t entry = 0;              // number of the question
  std::int64_t first = 0, tokens = 0;  // of the context
  std::int64_t at = 0;                 // position of the first of them in the sample
  friend bool operator==(const QuestionWindow&, const QuestionWindow&) = default;
};

struct QuestionSamplesOptions {
  std::int64_t context = 0;     // positions of a sample
  std::int64_t doc_stride = 0;  // tokens that two windows of one context share
  TextFrame frame = {};
  std::int32_t pad = 0;
  std::uint64_t seed = 0;  // of the order of the samples that train
  std::int64_t most = 0;   // held out: the first so many samples; 0: all
  bool types = false;      // an input of that name is there
};

/// The windows of a part, question after question: each as long as there is room, and begins so
/// many tokens behind the one before that doc_stride are in both. Errors: Fault::Data: a question
/// that leaves no more room than doc_stride, with its place.
std::vector<QuestionWindow> question_windows(const EncodedQuestions& questions, DataPart part,
                                             const QuestionSamplesOptions& options);

/// Where the answer is within a window: positions of the sample; {0, 0}, the first token, where it
/// is not whole in it, or there is none.
TokenRange answer_in(const EncodedQuestions& questions, const QuestionWindow& window);

/// Samples are the windows, as the script run_qa of transformers makes them. Inputs of a batch of n
/// samples, all i32: ids, mask and types [n, context], as of data/labelled_texts.h; start, end [n]:
/// answer_in(), or kIgnoredLabel where there is no sample. Those that train are in an order drawn
/// anew for each epoch. `data` outlives them. Errors: as of question_windows; no question.
std::unique_ptr<Samples> question_samples(const Dataset& data, DataPart part,
                                          const QuestionSamplesOptions& options);

/// Tokens of the longest sample of either part, uncut.
std::int64_t longest_question_sample(const Dataset& data, const TextFrame& frame);

}  // namespace tessera
