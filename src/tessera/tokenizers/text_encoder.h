#pragma once
/// From text to token ids: all that preparing token files asks of a tokenizer.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct TextEncoder {
  std::string name;             // what --tokenizer-type says
  std::int64_t vocabulary = 0;  // ids are below, that of the end of a document among them
  std::optional<std::int32_t> end_of_document;
  /// May be called from several threads. Errors: Fault::Data: text that has no ids.
  std::function<std::vector<std::int32_t>(std::string_view)> encode;
  std::string learned;               // as JSON, what was learned from the text; empty: nothing was
  std::vector<std::string> notices;  // what a user should know
};

struct TextEncoderChoice {
  std::string type = "bytes";
  std::string vocab_file, merge_file, path;  // as of TokenizerChoice; empty: none
  std::int64_t vocab_size = 0;               // 0: not told
  /// Calls its argument with every text that is to be encoded; for types that learn from it.
  std::function<void(const std::function<void(std::string_view)>&)> texts;
};

/// The encoder of choice.type:
///   bytes          an id for each byte; end of document: 256
///   characters     those of vocab_file (what `tessera train` keeps as a vocabulary), or of the
///                  texts
///   bpe            those of vocab_file, or learned from the texts, vocab_size at most
///   NullTokenizer  the text is ids, with blanks between; end of document: vocab_size
///   those of tokenizer_types(), without special tokens around a text; end of document: their own
/// Of characters and bpe the end of a document is the id behind those of the vocabulary.
/// Errors: Fault::Usage: another type; files or sizes that the type does not take or needs.
/// Fault::Data: as of load_tokenizer.
TextEncoder text_encoder(const TextEncoderChoice& choice);

/// text_encoder() learns from the texts.
bool learns_vocabulary(const TextEncoderChoice& choice);

/// "bytes", "characters", "bpe", "NullTokenizer", and tokenizer_types()
std::vector<std::string> text_encoder_names();

}  // namespace tessera
