#pragma once
/// From JSON lines to token files: what `tessera preprocess_data` does.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/tokenizers/text_encoder.h"

namespace tessera {

struct PreprocessRequest {
  std::vector<std::string> inputs;           // files of JSON lines, folders, patterns
  std::string output_prefix;                 // PREFIX_KEY_document.bin and .idx
  std::vector<std::string> keys = {"text"};  // of the texts in each line
  bool split_sentences = false;              // a sequence for each sentence: PREFIX_KEY_sentence
  bool keep_newlines = false;                // blanks behind a sentence stay with it
  bool append_eod = false;                   // the end of a document is a token, its last
  std::int64_t workers = 1;                  // threads that encode
  TextEncoderChoice encoder;                 // `texts` is set here
  bool overwrite = false;                    // files that exist
  /// Told how many of how many bytes were read, now and then; may be empty.
  std::function<void(std::int64_t documents, std::int64_t bytes, std::int64_t of)> progress;
};

struct PreprocessReport {
  struct Output {
    std::string prefix;
    std::int64_t documents = 0, sequences = 0, tokens = 0, empty_documents = 0;
  };
  std::vector<Output> outputs;  // one for each key
  std::string encoder;
  std::int64_t vocabulary = 0;
  std::string end_of_document;  // its id, or what stands for none
  std::string token_type;
  std::string vocabulary_file;  // what was learned; empty: nothing
  std::vector<std::string> notices;
  double seconds = 0;
  std::int64_t bytes = 0;
};

/// Every line is a document, also one without a token, in the order of the files; the result does
/// not depend on the number of workers, nor on how fast they are. Files appear when all of them are
/// complete. Errors: Fault::Usage: outputs that exist; end of document with an encoder that has
/// none; those of text_encoder. Fault::Data: as of texts_in_line and of the encoder, with the line.
PreprocessReport preprocess(const PreprocessRequest& request);

/// One fact per line.
std::string to_text(const PreprocessReport& report);

}  // namespace tessera
