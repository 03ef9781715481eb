/// What SentencePiece makes of a text before it is split, and of pieces when they are text again.

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/byte_trie.h"
#include "tessera/tokenizers/charsmap.h"
#include "tessera/tokenizers/regex.h"
#include "tessera/tokenizers/sentence_piece.h"

namespace tessera::tokenizer {

namespace {

constexpr std::string_view kSpaceMark = "\u2581";

std::size_t longest_of(const ByteTrie& trie, std::string_view text) {
  std::size_t out = 0;
  trie.prefixes(text, [&](std::size_t size, std::int32_t) { out = size; });
  return out;
}

}  // namespace

Normalizer sentence_piece_normalizer(const SentencePieceFile& file, const JsonPart& place) {
  ByteTrie::Keys keys;
  for (const SentencePieceFile::Entry& entry : file.pieces) {
    if (entry.type == PieceType::UserDefined) keys.emplace_back(entry.piece, 0);
  }
  const ByteTrie kept(std::move(keys));  // it holds no views of its keys
  const Charsmap map(file.charsmap, place);
  const bool dummy = file.add_dummy_prefix, trims = file.remove_extra_whitespaces,
             suffix = file.whitespace_as_suffix;
  const std::string space(file.escape_whitespaces ? kSpaceMark : " ");
  return [=](NormalizedText& text) {
    const std::string_view all = text.text;
    std::size_t at = 0;
    // The next characters, normalized: what the user defined stays, then the longest rule.
    const auto next = [&](std::size_t& size) {
      const std::string_view rest = all.substr(at);
      if (size = longest_of(kept, rest); size > 0) return rest.substr(0, size);
      const Charsmap::Match match = map.longest(rest);
      if (size = match.size; size > 0) return match.replacement;
      size = std::max<std::size_t>(1, static_cast<std::size_t>(code_point_at(rest, 0).size));
      return rest.substr(0, size);
    };
    std::size_t size = 0;
    while (trims && at < all.size() && next(size) == " ") at += size;
    std::string out;
    if (at == all.size()) {
      text.text.clear();
      return;
    }
    if (dummy && !suffix) out += space;
    bool after_space = trims;
    while (at < all.size()) {
      std::string_view part = next(size);
      while (after_space && starts_with(part, " ")) part.remove_prefix(1);
      if (!part.empty()) {
        for (const char c : part) c == ' ' ? void(out += space) : void(out += c);
        after_space = part.back() == ' ';
      }
      at += size;
      if (!trims) after_space = false;
    }
    while (trims && out.ends_with(space)) out.resize(out.size() - space.size());
    if (dummy && suffix) out += space;
    text.text = std::move(out);
  };
}

Decoder sentence_piece_decoder(const SentencePieceFile& file) {
  TokenTable types;  // of pieces that are not normal
  for (const SentencePieceFile::Entry& entry : file.pieces) {
    if (entry.type != PieceType::Normal)
      types.add(entry.piece, static_cast<std::int32_t>(entry.type));
  }
  const bool trims = file.remove_extra_whitespaces, strips = trims || file.add_dummy_prefix;
  return [types, trims, strips, unknown = file.unk_surface](std::vector<std::string>& tokens) {
    std::string out, bytes;
    bool at_start = true;
    const auto flush = [&] {
      while (!bytes.empty()) {
        const CodePoint c = code_point_at(bytes, 0);
        out += c.size == 0 ? "\uFFFD" : bytes.substr(0, static_cast<std::size_t>(c.size));
        bytes.erase(0, c.size == 0 ? 1 : static_cast<std::size_t>(c.size));
      }
    };
    for (const std::string& token : tokens) {
      const auto type = static_cast<PieceType>(types.find(token));
      if (const int byte = byte_of_token(token); type == PieceType::Byte && byte >= 0) {
        bytes += static_cast<char>(static_cast<unsigned char>(byte));
        continue;
      }
      flush();
      if (!out.empty()) at_start = false;
      if (type == PieceType::Control) continue;
      if (type == PieceType::Unknown) {
        out += unknown;
        continue;
      }
      std::string_view piece = token;
      if (at_start && strips && starts_with(piece, kSpaceMark)) {
        piece.remove_prefix(kSpaceMark.size());
        if (!trims) at_start = false;
      }
      Spans spans;
      find_string(piece, kSpaceMark, spans);
      for (const Span& span : spans)
        out += span.match ? " " : piece.substr(span.begin, span.end - span.begin);
    }
    flush();
    tokens = {out};
  };
}

}  // namespace tessera::tokenizer
