#pragma once
/// Lines of files as tokens, and which of them a model learns: dialogues, preferences.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/dialogue_tokens.h"
#include "tessera/data/rows.h"
#include "tessera/files/json_lines.h"

namespace tessera {

struct EncodedLines {
  std::int64_t columns = 1;  // texts of a row
  std::vector<std::int32_t> ids = {};
  std::vector<std::uint8_t> counts = {};
  std::vector<std::int64_t> ends = {};  // of each text
  std::vector<TextFile> files = {};
  std::string digest = {};
  std::int64_t cut = 0;             // lines that are longer than the context
  std::int64_t without_answer = 0;  // of these left out, as their answers were cut off
  std::int64_t same = 0;            // of preferences: both answers are the same

  void add(const DialogueTokens& text);
  std::int64_t rows() const { return std::ssize(ends) / columns; }
};

/// Cuts what is longer than the context, where `rules` do not refuse that. False: none of the
/// tokens that are left is to be learned. `what`: for messages, "the dialogue"; `these`: "such
/// dialogues". Errors: Fault::Data: it is too long.
bool fits(DialogueTokens& made, const DialogueRules& rules, const std::string& what,
          std::string_view these);

/// Adds a line to `out`.
using EncodeLine =
    std::function<void(std::string_view line, const LinePlace& place, EncodedLines& out)>;
/// The lines of files as rows of so many texts, encoded by all cores: `encoder()` makes what
/// encodes some of them, on one thread.
EncodedLines encode_lines(const std::vector<std::string>& paths, std::int64_t columns,
                          const std::function<EncodeLine()>& encoder);
/// Dataset::digest of them, without a vocabulary.
std::string lines_digest(const RowsChoice& choice);

/// Texts with their counts: what `choice` says of `given` trains, and what does not, or all of
/// `apart`, is held out. Errors: Fault::Data: no row, called `what`, is left for that.
Texts texts_of_rows(const RowsChoice& choice, const EncodedLines& given, const EncodedLines& apart,
                    std::string_view what);
/// What the user is to know of rows that were cut and left out, called `what`; empty: nothing.
std::string notice_of_cut(const EncodedLines& given, const EncodedLines& apart,
                          std::string_view what);

/// What `encode` throws names the place. Errors: as `encode`.
template <typename Encode>
void at_place(const LinePlace& place, const Encode& encode) try {
  encode();
} catch (const Error& error) {
  throw Error(error.fault(), text("'", *place.path, "' line ", place.line, ": ", error.what()));
}

}  // namespace tessera
