#pragma once
/// Files with a JSON object in each line.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/unpack.h"

namespace tessera {

/// Longest line of JSON lines, and longest row of a table, in bytes: parsed, it takes some times as
/// much memory. What is longer is mostly no line: the newlines are missing, or a quote is.
inline constexpr std::int64_t kMostLineBytes = 64 << 20;

/// Where a line is, for messages.
struct LinePlace {
  const std::string* path = nullptr;
  std::int64_t line = 0;  // from 1
};

/// The texts of a line's keys, in the order of `keys`: a string, or a list of strings. What else
/// the object has is passed over, however deep it is nested. Errors: Fault::Data: no JSON object,
/// with the column; a key that is missing; another kind of value. A key that is there twice counts
/// as the last one.
std::vector<std::vector<std::string>> texts_in_line(std::string_view line,
                                                    std::span<const std::string> keys,
                                                    const LinePlace& place);

/// Errors: Fault::Data: a line, or `what` else begins there, has more than kMostLineBytes.
void require_line_length(std::int64_t bytes, const LinePlace& place, const char* what = "line");

/// Some lines of a file.
struct LineBlock {
  std::string bytes;
  const std::string* path = nullptr;
  std::int64_t first_line = 1;  // the number of the first one
  std::int64_t file_bytes = 0;  // on the disk, that were read for it
};

/// The lines of files, which may be packed, one file after another, some bytes at a time.
class LineBlocks {
 public:
  /// `paths` outlive it and its blocks. Errors: as of Contents (unpack.h).
  explicit LineBlocks(std::span<const std::string> paths, std::int64_t block_bytes = 1 << 20);
  /// The next block of whole lines, each with its newline but for one that a file ends without;
  /// false: there is none. A byte order mark at the start of a file is left out. Errors: as of
  /// Contents; a line that is too long.
  bool next(LineBlock& out);
  /// Of all files on the disk.
  std::int64_t bytes() const { return bytes_; }

 private:
  std::span<const std::string> paths_;
  std::int64_t block_bytes_, bytes_ = 0;
  std::size_t file_ = 0;
  std::optional<Contents> contents_;  // of file_; none: it is not begun
  std::int64_t line_ = 1;
  std::string rest_;   // the beginning of a line that the last block broke
  bool ends_ = false;  // the file has no more bytes
};

/// Calls `take` with each line of a block, without its newline and the \r before it, and its place.
/// Lines of blanks alone are passed over.
template <typename Take>
void for_each_line(const LineBlock& block, const Take& take) {
  std::int64_t line = block.first_line;
  for (std::size_t at = 0; at < block.bytes.size(); ++line) {
    const std::size_t newline = block.bytes.find('\n', at);
    const std::size_t end = newline == std::string::npos ? block.bytes.size() : newline;
    std::string_view text(block.bytes.data() + at, end - at);
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.find_first_not_of(" \t") != std::string_view::npos)
      take(text, LinePlace{block.path, line});
    at = end + 1;
  }
}

}  // namespace tessera
