#include "tessera/tokenizers/pre_tokenizers.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/characters.h"
#include "tessera/tokenizers/gpt2_pieces.h"
#include "tessera/tokenizers/normalizers.h"
#include "tessera/tokenizers/regex.h"

namespace tessera::tokenizer {

namespace {

/// The characters of a text for which `is` holds, each a match of its own.
template <typename Is>
void find_characters(std::string_view text, const Is& is, Spans& out) {
  std::size_t last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const std::size_t size = c.size == 0 ? 1 : static_cast<std::size_t>(c.size);
    if (is(c.value)) {
      if (last < at) out.push_back({last, at, false});
      out.push_back({at, at + size, true});
      last = at + size;
    }
    at += size;
  }
  if (last < text.size()) out.push_back({last, text.size(), false});
}

template <typename Is>
PreTokenizing split_characters(Is is, SplitBehavior behavior) {
  return {[is, behavior](const Piece& piece, PieceSink sink) {
    Spans spans;
    find_characters(piece.text, is, spans);
    split_at(piece, spans, behavior, sink);
  }};
}

template <Traits kOf>
bool has_trait(char32_t c) {
  return (traits_of(c) & kOf) != 0;
}

PreTokenizing make_whitespace_split(const JsonPart&) {
  return split_characters(has_trait<kBlank>, SplitBehavior::Removed);
}

PreTokenizing make_punctuation(const JsonPart& part) {
  return split_characters(has_trait<kPunctuation>, behavior_of(part, "Isolated"));
}

PreTokenizing make_digits(const JsonPart& part) {
  return split_characters(has_trait<kNumeric>, part.flag("individual_digits", false)
                                                   ? SplitBehavior::Isolated
                                                   : SplitBehavior::Contiguous);
}

PreTokenizing make_char_delimiter_split(const JsonPart& part) {
  const char32_t delimiter = part.character("delimiter");
  return split_characters([delimiter](char32_t c) { return c == delimiter; },
                          SplitBehavior::Removed);
}

/// Runs of word characters, and runs of what is neither that nor white space.
PreTokenizing make_whitespace(const JsonPart&) {
  return {[](const Piece& piece, PieceSink sink) {
    constexpr Traits kKinds = kWord | kBlank;
    std::size_t begin = 0;
    Traits kind = kBlank;
    for (std::size_t at = 0; at < piece.text.size();) {
      const CodePoint c = code_point_at(piece.text, at);
      const auto here = static_cast<Traits>(traits_of(c.value) & kKinds);
      if (here != kind) {
        if (kind != kBlank) hand_on(piece, begin, at, sink);
        begin = at;
        kind = here;
      }
      at += c.size == 0 ? 1 : static_cast<std::size_t>(c.size);
    }
    if (kind != kBlank) hand_on(piece, begin, piece.text.size(), sink);
  }};
}

PreTokenizing make_split(const JsonPart& part) {
  const SplitBehavior behavior = behavior_of(part);
  const bool invert = part.flag("invert", false);
  const Finder find = make_finder(part);
  return {[=](const Piece& piece, PieceSink sink) {
    Spans spans;
    find(piece.text, spans);
    for (Span& span : spans) span.match = span.match != invert;
    split_at(piece, spans, behavior, sink);
  }};
}

/// One behind the other, from `number` on.
void split_in_turn(const std::vector<PreTokenizing>& all, std::size_t number, const Piece& piece,
                   PieceSink sink) {
  if (number == all.size()) return sink(piece);
  const bool prints = all[number].prints && number + 1 < all.size();
  all[number].split(piece, [&](const Piece& part) {
    if (!prints) return split_in_turn(all, number + 1, part, sink);
    std::string printed;
    print_bytes(part.text, printed);
    split_in_turn(all, number + 1, {printed, part.at_start}, sink);
  });
}

PreTokenizing make_pre_tokenizers(const JsonPart& part) {
  std::vector<PreTokenizing> all;
  for (std::size_t i = 0; i < part.count("pretokenizers"); ++i)
    all.push_back(make_pre_tokenizer(part.item("pretokenizers", i)));
  const bool prints = !all.empty() && all.back().prints;
  return {[all = std::move(all)](const Piece& piece, PieceSink sink) {
            split_in_turn(all, 0, piece, sink);
          },
          prints};
}

constexpr Maker<PreTokenizing> kPreTokenizers[] = {
    {"BertPreTokenizer", make_bert_pieces},
    {"ByteLevel", make_byte_level},
    {"CharDelimiterSplit", make_char_delimiter_split},
    {"Digits", make_digits},
    {"Metaspace", make_metaspace},
    {"Punctuation", make_punctuation},
    {"Sequence", make_pre_tokenizers},
    {"Split", make_split},
    {"Whitespace", make_whitespace},
    {"WhitespaceSplit", make_whitespace_split},
};

}  // namespace

PreTokenizing make_pre_tokenizer(const JsonPart& part) {
  return make_by_type<PreTokenizing>(kPreTokenizers, part, "pre-tokenizer");
}

/// Words between white space, punctuation alone.
PreTokenizing make_bert_pieces(const JsonPart&) {
  return {[](const Piece& piece, PieceSink sink) {
    const std::array<Traits, 128>& ascii = ascii_traits();
    const std::string_view text = piece.text;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto byte = static_cast<unsigned char>(text[at]);
      std::size_t size = 1;
      Traits traits = 0;
      if (byte < 0x80) {
        traits = ascii[byte];
      } else if (const CodePoint c = code_point_at(text, at); c.size > 0) {
        traits = traits_of(c.value);
        size = static_cast<std::size_t>(c.size);
      }
      if ((traits & (kBlank | kPunctuation)) != 0) {
        hand_on(piece, begin, at, sink);
        if ((traits & kBlank) == 0) hand_on(piece, at, at + size, sink);
        begin = at + size;
      }
      at += size;
    }
    hand_on(piece, begin, text.size(), sink);
  }};
}

PreTokenizing make_byte_level(const JsonPart& part) {
  const bool blank = part.flag("add_prefix_space", true), splits = part.flag("use_regex", true);
  return {[blank, splits](const Piece& piece, PieceSink sink) {
            std::string begun;
            Piece rest = piece;
            if (blank && !starts_with(rest.text, " ")) {
              begun = " ";
              begun += rest.text;
              rest.text = begun;
            }
            while (!rest.text.empty()) {
              const std::size_t size = splits ? gpt2_piece_size(rest.text) : rest.text.size();
              sink({rest.text.substr(0, size), rest.at_start});
              rest = {rest.text.substr(size), false};
            }
          },
          true};
}

/// A character in place of blanks, which begins words.
PreTokenizing make_metaspace(const JsonPart& part) {
  std::string mark;
  append_utf8(mark, part.character("replacement", U'\u2581'));
  std::string scheme = part.text("prepend_scheme", "");
  if (scheme.empty()) scheme = part.flag("add_prefix_space", true) ? "always" : "never";
  if (scheme != "always" && scheme != "first" && scheme != "never")
    part.bad("prepend_scheme '", scheme.substr(0, 60),
             "' is none of always, first, never; restore the file");
  const bool always = scheme == "always", first = scheme == "first";
  const bool splits = part.flag("split", true);
  return {[=](const Piece& piece, PieceSink sink) {
    std::string text;
    for (const char c : piece.text) c == ' ' ? void(text += mark) : void(text += c);
    if ((always || (first && piece.at_start)) && !starts_with(text, mark)) text.insert(0, mark);
    const Piece whole = {text, piece.at_start};
    if (!splits) return sink(whole);
    std::size_t begin = 0;
    for (std::size_t at = text.find(mark); at != text.npos;
         at = text.find(mark, at + mark.size())) {
      hand_on(whole, begin, at, sink);
      begin = at;
    }
    hand_on(whole, begin, text.size(), sink);
  }};
}

}  // namespace tessera::tokenizer
