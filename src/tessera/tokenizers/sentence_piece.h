#pragma once
/// .model files of SentencePiece.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tokenizers/decoders.h"
#include "tessera/tokenizers/model.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera::tokenizer {

enum class PieceType { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

/// What a .model file says, as far as it is used.
struct SentencePieceFile {
  struct Entry {
    std::string piece;
    float score = 0;
    PieceType type = PieceType::Normal;
  };
  std::vector<Entry> pieces;  // by id
  bool bpe = false;           // else Unigram
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  std::string charsmap;  // of the normalizer, as Charsmap reads it
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  std::int32_t unk = 0, bos = 1, eos = 2, pad = -1;
  std::string unk_surface = " \u2047 ";
};

/// Reads the protocol buffer, field by field; fields that are not used are passed over.
/// Errors: Fault::Data: cut short, no pieces, no unknown piece, a model type other than Unigram and
/// BPE.
SentencePieceFile read_sentence_piece(std::string_view bytes, const std::string& file);

/// The parts of a tokenizer that does what SentencePiece does.
Normalizer sentence_piece_normalizer(const SentencePieceFile& file, const JsonPart& place);
std::unique_ptr<Model> sentence_piece_model(const SentencePieceFile& file);
/// Tokens to text. It tells pieces apart by how they are spelled.
Decoder sentence_piece_decoder(const SentencePieceFile& file);

}  // namespace tessera::tokenizer
