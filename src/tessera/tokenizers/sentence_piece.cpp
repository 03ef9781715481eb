#include "tessera/tokenizers/sentence_piece.h"

#include <cstring>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"

namespace tessera::tokenizer {

namespace {

/// The fields of a message of protocol buffers.
class WireReader {
 public:
  WireReader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  /// Reads the next field; false: the message ends.
  bool next() {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t tag = varint();
    field_ = tag >> 3;
    const std::uint64_t kind = tag & 7;
    number_ = 0;
    data_ = {};
    if (kind == 0) {
      number_ = varint();
    } else if (kind == 1) {
      data_ = take(8);
    } else if (kind == 2) {
      data_ = take(varint());
    } else if (kind == 5) {
      data_ = take(4);
    } else {
      damaged(text("a field of wire type ", kind));
    }
    kind_ = kind;
    return true;
  }

  std::uint64_t field() const { return field_; }
  std::int32_t number() const {
    if (kind_ != 0) damaged(text("field ", field_, " is not a number"));
    return static_cast<std::int32_t>(static_cast<std::int64_t>(number_));
  }
  std::string_view data() const {
    if (kind_ != 2) damaged(text("field ", field_, " is not a text"));
    return data_;
  }
  float real() const {
    if (kind_ != 5) damaged(text("field ", field_, " is not a float"));
    float out = 0;
    std::memcpy(&out, data_.data(), sizeof out);
    return out;
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    fail(Fault::Data, "tokenizer file '", file_,
         "' is not a model of SentencePiece, or damaged: ", what, " at byte ", at_,
         " of a part of ", bytes_.size(), "; restore the file");
  }
  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      out |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return out;
    }
    damaged("a number of more than 64 bits");
  }
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) damaged(text("it ends within ", size, " bytes"));
    const std::string_view out = bytes_.substr(at_, size);
    at_ += size;
    return out;
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::uint64_t field_ = 0, kind_ = 0, number_ = 0;
  std::string_view data_;
};

SentencePieceFile::Entry read_piece(std::string_view bytes, const std::string& file) {
  SentencePieceFile::Entry out;
  WireReader part(bytes, file);
  while (part.next()) {
    if (part.field() == 1) out.piece = part.data();
    if (part.field() == 2) out.score = part.real();
    if (part.field() == 3) {
      const std::int32_t type = part.number();
      if (type < 1 || type > 6)
        fail(Fault::Data, "tokenizer file '", file, "': a piece is of type ", type,
             ", but types are 1 to 6; restore the file");
      out.type = static_cast<PieceType>(type);
    }
  }
  if (out.piece.empty() || find_invalid_utf8(out.piece) != std::string::npos)
    fail(Fault::Data, "tokenizer file '", file, "': a piece is ",
         out.piece.empty() ? "empty" : "not UTF-8", "; restore the file");
  if (!(out.score > -1e30F && out.score < 1e30F))
    fail(Fault::Data, "tokenizer file '", file, "': the score of '", out.piece.substr(0, 60),
         "' is ", out.score, "; restore the file");
  return out;
}

void read_trainer(std::string_view bytes, const std::string& file, SentencePieceFile& out) {
  WireReader part(bytes, file);
  while (part.next()) {
    switch (part.field()) {
      case 3: {
        constexpr std::string_view kTypes[] = {"unigram", "bpe", "word", "char"};
        const std::int32_t type = part.number();
        if (type != 1 && type != 2)
          fail(Fault::Data, "tokenizer file '", file, "' is a model of type ",
               type >= 3 && type <= 4 ? std::string(kTypes[type - 1])
                                      : number_text(std::int64_t{type}),
               "; supported are unigram and bpe");
        out.bpe = type == 2;
        break;
      }
      case 24: out.whitespace_as_suffix = part.number() != 0; break;
      case 35: out.byte_fallback = part.number() != 0; break;
      case 40: out.unk = part.number(); break;
      case 41: out.bos = part.number(); break;
      case 42: out.eos = part.number(); break;
      case 43: out.pad = part.number(); break;
      case 44: out.unk_surface = part.data(); break;
      default: break;
    }
  }
}

void read_normalizer_spec(std::string_view bytes, const std::string& file, SentencePieceFile& out) {
  WireReader part(bytes, file);
  while (part.next()) {
    if (part.field() == 2) out.charsmap = part.data();
    if (part.field() == 3) out.add_dummy_prefix = part.number() != 0;
    if (part.field() == 4) out.remove_extra_whitespaces = part.number() != 0;
    if (part.field() == 5) out.escape_whitespaces = part.number() != 0;
  }
}

}  // namespace

SentencePieceFile read_sentence_piece(std::string_view bytes, const std::string& file) {
  SentencePieceFile out;
  WireReader model(bytes, file);
  while (model.next()) {
    if (model.field() == 1) out.pieces.push_back(read_piece(model.data(), file));
    if (model.field() == 2) read_trainer(model.data(), file, out);
    if (model.field() == 3) read_normalizer_spec(model.data(), file, out);
  }
  std::optional<std::int32_t> unknown;
  for (std::size_t i = 0; i < out.pieces.size(); ++i) {
    if (out.pieces[i].type == PieceType::Unknown) unknown = static_cast<std::int32_t>(i);
  }
  if (!unknown)
    fail(Fault::Data, "tokenizer file '", file, "' has ", out.pieces.size(),
         " pieces but no unknown one: it is not a model of SentencePiece, or damaged; restore it");
  out.unk = *unknown;
  return out;
}

}  // namespace tessera::tokenizer
