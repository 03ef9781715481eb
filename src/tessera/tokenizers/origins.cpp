#include "tessera/tokenizers/origins.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"

namespace tessera::tokenizer {

namespace {

constexpr std::string_view kBlankMark = "\xE2\x96\x81";  // U+2581

std::size_t character_size(std::string_view text, std::size_t at) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(code_point_at(text, at).size));
}

/// What becomes of parts of a text. Most are single characters of ASCII, which are kept.
class NormalizedParts {
 public:
  explicit NormalizedParts(const Normalizer& normalizer) : normalizer_(normalizer) {}

  const std::string& of(std::string_view part) {
    const bool keeps = part.size() == 1 && static_cast<unsigned char>(part[0]) < 0x80;
    std::optional<std::string>& out = keeps ? kept_[static_cast<unsigned char>(part[0])] : last_;
    if (keeps && out) return *out;
    NormalizedText text{std::string(part)};
    normalizer_(text);
    out = std::move(text.text);
    return *out;
  }

 private:
  const Normalizer& normalizer_;
  std::array<std::optional<std::string>, 128> kept_;
  std::optional<std::string> last_;
};

/// How many bytes of `rest` a part made: what the normalizer makes of it alone; without the mark
/// that is put before each text; the part itself, which alone would be stripped. Nothing: none.
std::optional<std::size_t> made_of(std::string_view part, std::string_view made,
                                   std::string_view rest) {
  if (made.empty() && !part.empty() && starts_with(rest, part)) return part.size();
  if (starts_with(rest, made)) return made.size();
  if (starts_with(made, kBlankMark) && starts_with(rest, made.substr(kBlankMark.size())))
    return made.size() - kBlankMark.size();
  return std::nullopt;
}

}  // namespace

std::vector<Origin> origins_of(std::string_view text, std::string_view normalized,
                               const Normalizer& normalizer) {
  std::vector<Origin> out;
  out.reserve(normalized.size());
  NormalizedParts parts(normalizer);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    std::optional<std::size_t> made;
    for (int together = 0; !made && together < kMostTogether && end < text.size(); ++together) {
      end += character_size(text, end);
      const std::string_view part = text.substr(at, end - at);
      made = made_of(part, parts.of(part), normalized.substr(out.size()));
    }
    if (!made)
      fail(Fault::Data, "unknown which characters the tokenizer's normalizer made of '",
           printable(text.substr(at, end - at)), "' at byte ", at,
           " of the text; use a tokenizer whose normalizer changes a few characters at a time, as "
           "BERT's");
    out.resize(out.size() + *made, {at, end});
    at = end;
  }
  if (out.size() != normalized.size())
    fail(Fault::Data, "the tokenizer's normalizer makes ", normalized.size(),
         " bytes of a text of ", text.size(), ", but ", out.size(),
         " of its characters one by one; use a tokenizer whose "
         "normalizer changes a few characters at a time, as BERT's");
  return out;
}

std::vector<std::size_t> places_in(std::string_view text, std::string_view piece,
                                   std::size_t& cursor) {
  std::vector<std::size_t> out;
  const std::less_equal<const char*> before;
  if (before(text.data(), piece.data()) &&
      before(piece.data() + piece.size(), text.data() + text.size())) {
    const auto begin = static_cast<std::size_t>(piece.data() - text.data());
    for (std::size_t i = 0; i < piece.size(); ++i) out.push_back(begin + i);
    cursor = begin + piece.size();
    return out;
  }
  for (std::size_t at = 0; at < piece.size();) {
    const std::string_view character = piece.substr(at, character_size(piece, at));
    const bool mark = character == kBlankMark, blank = mark || character == " ";
    const std::string_view rest = text.substr(std::min(cursor, text.size()));
    at += character.size();
    if (blank && !starts_with(rest, " ") && !(mark && starts_with(rest, kBlankMark))) {
      out.resize(out.size() + character.size(), kNowhere);
      continue;
    }
    const std::size_t found = blank ? 0 : rest.find(character);
    if (found == rest.npos)
      fail(Fault::Data, "a piece of the text, '", printable(piece.substr(0, 60)),
           "', is not literally in it; use a tokenizer that splits texts into their parts, as "
           "BERT's "
           "and GPT-2's");
    cursor += found;
    for (std::size_t i = 0; i < character.size(); ++i) out.push_back(cursor + (blank ? 0 : i));
    cursor += blank ? character_size(rest, 0) : character.size();
  }
  return out;
}

}  // namespace tessera::tokenizer
