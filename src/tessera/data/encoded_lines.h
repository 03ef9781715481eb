#pragma once
/// Lines of files as tokens, and which of them a model learns: dialogues, preferences.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

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

  void add(const DialogueTokens& text);
  std::int64_t rows() const { return std::ssize(ends) / columns; }
};

/// Calls `take(line, place)` for each line of the files, which it adds to `files`; returns
/// Dataset::digest.
std::string each_data_line(
    const std::vector<std::string>& paths, std::vector<TextFile>& files,
    const std::function<void(std::string_view line, const LinePlace& place)>& take);

/// Texts with their counts: what `choice` says of `given` trains, and what does not, or all of
/// `apart`, is held out. Errors: Fault::Data: no row, called `what`, is left for that.
Texts texts_of_rows(const RowsChoice& choice, const EncodedLines& given, const EncodedLines& apart,
                    std::string_view what);

}  // namespace tessera
