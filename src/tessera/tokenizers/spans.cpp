/// The way of a text through a tokenizer with the place of each token.

#include <algorithm>

#include "tessera/base/utf8.h"
#include "tessera/tokenizers/normalizers.h"
#include "tessera/tokenizers/origins.h"
#include "tessera/tokenizers/parts.h"

namespace tessera {

using tokenizer::Ids;
using tokenizer::kNowhere;
using tokenizer::Origin;

namespace {

/// Where the tokens `ids` of a word end in it, in bytes. A token for what is unknown takes what the
/// others leave, or, of several such tokens, a character each.
std::vector<std::size_t> token_ends(const tokenizer::Model& model, std::string_view word,
                                    const Ids& ids) {
  std::size_t known = 0;
  std::int64_t unknown = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t bytes = model.bytes_of(ids[i], i == 0);
    known += bytes;
    unknown += bytes == 0 ? 1 : 0;
  }
  std::vector<std::size_t> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::size_t bytes = model.bytes_of(ids[i], i == 0);
    if (bytes == 0 && unknown-- == 1) bytes = word.size() - std::min(word.size(), at + known);
    if (bytes == 0 && at < word.size())
      bytes = static_cast<std::size_t>(std::max(1, code_point_at(word, at).size));
    if (model.bytes_of(ids[i], i == 0) > 0) known -= bytes;
    at = std::min(word.size(), at + bytes);
    out.push_back(at);
  }
  return out;
}

/// A piece as its model sees it: its characters, or those that stand for its bytes.
struct ShownWord {
  std::string text;
  std::vector<std::size_t> bytes;  // of each byte of it, the byte of the piece

  ShownWord(std::string_view word, bool prints) {
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (prints) {
        tokenizer::print_bytes(word.substr(i, 1), text);
      } else {
        text += word[i];
      }
      bytes.resize(text.size(), i);
    }
  }
};

/// Adds a token without the blanks at both ends of its place.
void push_trimmed(std::int32_t id, std::string_view text, Origin span, SpannedIds& out) {
  while (span.begin < span.end && text[span.begin] == ' ') ++span.begin;
  while (span.begin < span.end && text[span.end - 1] == ' ') --span.end;
  out.ids.push_back(id);
  out.spans.push_back({static_cast<std::int64_t>(span.begin), static_cast<std::int64_t>(span.end)});
}

/// Adds tokens of one part of a text, between those that are found in it as they are.
class SpanAppender {
 public:
  SpanAppender(std::string_view whole, std::size_t begin, std::string_view part,
               std::string_view normalized, const tokenizer::Normalizer& normalizer,
               SpannedIds& out)
      : whole_(whole), begin_(begin), normalized_(normalized), out_(out) {
    if (normalizer) origins_ = tokenizer::origins_of(part, normalized, normalizer);
    last_ = begin;
  }

  void add(std::int32_t id, std::size_t from, std::size_t to) {
    Origin span{kNowhere, 0};
    for (std::size_t i = from; i < to; ++i) cover(i, span);
    push(id, span);
  }

  void add_word(const tokenizer::Model& model, bool prints, std::string_view word,
                tokenizer::ModelScratch& scratch) {
    const std::vector<std::size_t> places = tokenizer::places_in(normalized_, word, cursor_);
    const ShownWord shown(word, prints);
    Ids ids;
    model.encode(shown.text, scratch, ids);
    const std::vector<std::size_t> ends = token_ends(model, shown.text, ids);
    std::size_t from = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      Origin span{kNowhere, 0};
      for (; from < ends[i]; ++from) {
        const std::size_t place = places[shown.bytes[from]];
        if (place != kNowhere) cover(place, span);
      }
      push(ids[i], span);
    }
  }
  void begin_piece(std::size_t at) { cursor_ = at; }

 private:
  /// Takes in what byte `i` of the normalized text stands for.
  void cover(std::size_t i, Origin& span) const {
    Origin of = origins_.empty() ? Origin{i, i + 1} : origins_[i];
    of.begin += begin_, of.end += begin_;
    if (origins_.empty()) {  // the whole character
      while (is_within(of.begin)) --of.begin;
      while (is_within(of.end)) ++of.end;
    }
    span = {std::min(span.begin, of.begin), std::max(span.end, of.end)};
  }
  bool is_within(std::size_t at) const {
    return at < whole_.size() && (static_cast<unsigned char>(whole_[at]) & 0xC0) == 0x80;
  }

  void push(std::int32_t id, Origin span) {
    if (span.begin == kNowhere) span = {last_, last_};
    last_ = span.end;
    push_trimmed(id, whole_, span, out_);
  }

  std::string_view whole_;
  std::size_t begin_;  // of the part in the whole text
  std::string_view normalized_;
  SpannedIds& out_;
  std::vector<Origin> origins_;  // in the part; empty: it is as it was
  std::size_t cursor_ = 0, last_ = 0;
};

}  // namespace

void Tokenizer::Parts::append_spans(std::string_view text, Scratch& scratch,
                                    SpannedIds& out) const {
  const auto add_part = [&](std::size_t begin, std::size_t end) {
    const std::string_view given = text.substr(begin, end - begin);
    tokenizer::NormalizedText part{std::string(given)};
    if (normalizer) normalizer(part);
    SpanAppender spans(text, begin, given, part.text, normalizer, out);
    added.split(
        part.text, true, true,
        [&](std::size_t from, std::size_t to) {
          const tokenizer::Piece piece{std::string_view(part.text).substr(from, to - from),
                                       begin == 0 && from == 0 && part.keeps_start};
          spans.begin_piece(from);
          const auto add_word = [&](const tokenizer::Piece& word) {
            if (!word.text.empty())
              spans.add_word(*model, pre_tokenizer.prints, word.text, scratch.model);
          };
          pre_tokenizer.split ? pre_tokenizer.split(piece, add_word) : add_word(piece);
        },
        [&](std::int32_t id, std::size_t from, std::size_t to) { spans.add(id, from, to); });
  };
  added.split(text, false, true, add_part,
              [&](std::int32_t id, std::size_t begin, std::size_t end) {
                push_trimmed(id, text, {begin, end}, out);
              });
}

}  // namespace tessera
