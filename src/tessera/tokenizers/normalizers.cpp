#include "tessera/tokenizers/normalizers.h"

#include <memory>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/byte_tokens.h"
#include "tessera/tokenizers/characters.h"
#include "tessera/tokenizers/regex.h"

namespace tessera::tokenizer {

namespace {

template <NormalForm kForm>
Normalizer make_form(const JsonPart&) {
  return [](NormalizedText& text) { normalize_form(text.text, kForm); };
}

/// A normalizer that looks at one character at a time: `each` appends what becomes of it.
template <typename Each>
Normalizer by_character(const Each& each) {
  return [each](NormalizedText& text) {
    std::string out;
    out.reserve(text.text.size());
    for (std::size_t at = 0; at < text.text.size();) {
      const CodePoint c = code_point_at(text.text, at);
      if (c.size == 0) {
        out += text.text[at++];
        continue;
      }
      each(out, c.value);
      if (at == 0 && out.empty()) text.keeps_start = false;
      at += static_cast<std::size_t>(c.size);
    }
    text.text = std::move(out);
  };
}

Normalizer make_lowercase(const JsonPart&) {
  return by_character([](std::string& out, char32_t c) { append_lower(out, c); });
}

Normalizer make_strip_accents(const JsonPart&) {
  return by_character([](std::string& out, char32_t c) {
    if ((traits_of(c) & kMark) == 0) append_utf8(out, c);
  });
}

Normalizer make_strip(const JsonPart& part) {
  const bool left = part.flag("strip_left", true), right = part.flag("strip_right", true);
  return [left, right](NormalizedText& text) {
    std::string_view rest = text.text;
    const auto blank = [](const CodePoint& c) {
      return c.size > 0 && (traits_of(c.value) & kBlank) != 0;
    };
    std::size_t begin = 0, end = rest.size();
    while (left && begin < end) {
      const CodePoint c = code_point_at(rest, begin);
      if (!blank(c)) break;
      begin += static_cast<std::size_t>(c.size);
    }
    while (right && end > begin) {
      std::size_t at = end - 1;
      while (at > begin && (static_cast<unsigned char>(rest[at]) & 0xC0) == 0x80) --at;
      if (!blank(code_point_at(rest, at))) break;
      end = at;
    }
    if (begin > 0) text.keeps_start = false;
    text.text = std::string(rest.substr(begin, end - begin));
  };
}

Normalizer make_replace(const JsonPart& part) {
  const Finder find = make_finder(part);
  const std::string content = part.text("content");
  return [find, content](NormalizedText& text) {
    Spans spans;
    find(text.text, spans);
    std::string out;
    for (const Span& span : spans) {
      if (span.match) {
        if (span.begin == 0 && span.end > 0 && content.empty()) text.keeps_start = false;
        out += content;
        text.require_bounded(out.size());
      } else {
        out += std::string_view(text.text).substr(span.begin, span.end - span.begin);
      }
    }
    text.text = std::move(out);
  };
}

Normalizer make_prepend(const JsonPart& part) {
  const std::string prepended = part.text("prepend");
  return [prepended](NormalizedText& text) {
    if (text.text.empty()) return;
    text.text.insert(0, prepended);
    text.require_bounded(text.text.size());
  };
}

/// What the Neural Machine Translation toolkits before SentencePiece did: controls go, and some
/// marks and spaces become blanks.
Normalizer make_nmt(const JsonPart&) {
  return by_character([](std::string& out, char32_t c) {
    const bool goes = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                      c == 0x7F || c == 0x8F || c == 0x9F;
    if (goes) return;
    const bool blank = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    append_utf8(out, blank ? U' ' : c);
  });
}

Normalizer make_byte_level_normalizer(const JsonPart&) {
  return [](NormalizedText& text) {
    std::string out;
    print_bytes(text.text, out);
    text.text = std::move(out);
  };
}

Normalizer make_normalizers(const JsonPart& part) {
  std::vector<Normalizer> all;
  for (std::size_t i = 0; i < part.count("normalizers"); ++i)
    all.push_back(make_normalizer(part.item("normalizers", i)));
  return [all = std::move(all)](NormalizedText& text) {
    for (const Normalizer& each : all) {
      each(text);
      text.require_bounded(text.text.size());
    }
  };
}

constexpr Maker<Normalizer> kNormalizers[] = {
    {"BertNormalizer", make_bert_normalizer},
    {"ByteLevel", make_byte_level_normalizer},
    {"Lowercase", make_lowercase},
    {"NFC", make_form<NormalForm::C>},
    {"NFD", make_form<NormalForm::D>},
    {"NFKC", make_form<NormalForm::Kc>},
    {"NFKD", make_form<NormalForm::Kd>},
    {"Nmt", make_nmt},
    {"Precompiled", make_precompiled},
    {"Prepend", make_prepend},
    {"Replace", make_replace},
    {"Sequence", make_normalizers},
    {"Strip", make_strip},
    {"StripAccents", make_strip_accents},
};

}  // namespace

void NormalizedText::require_bounded(std::size_t bytes) const {
  constexpr std::size_t kMostPerByte = 64, kMostMore = 4096;
  if (bytes > kMostPerByte * given + kMostMore)
    fail(Fault::Data, "the normalizer of the tokenizer makes more than ", bytes, " bytes of ",
         given, ", and the most is ", kMostPerByte, " for each and ", kMostMore,
         " more; remove the parts of its \"normalizer\" that lengthen texts");
}

Normalizer make_normalizer(const JsonPart& part) {
  return make_by_type<Normalizer>(kNormalizers, part, "normalizer");
}

void print_bytes(std::string_view text, std::string& out) {
  for (const char c : text) append_utf8(out, printed_byte(static_cast<unsigned char>(c)));
}

}  // namespace tessera::tokenizer
