#pragma once
/// Files that are read one after another, again and again, in pieces that are encoded apart.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/unpack.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

/// Files of texts, or of JSON lines.
struct StreamFiles {
  std::vector<std::string> paths = {};
  std::string column = {};     // of JSON lines: the key of the texts; empty: the files are texts
  bool skip_bad_rows = false;  // lines that are no objects or lack the key
  std::uint64_t key = 0;       // of the order of files, which is drawn anew for each pass

  /// The file that is read as `number` of a pass.
  const std::string& file(std::int64_t pass, std::int64_t number) const;
};

/// Where a piece begins.
struct StreamPlace {
  std::int64_t pass = 0, file = 0;  // its number in the order of this pass
  std::int64_t offset = 0;          // in what the file holds
  std::int64_t line = 1;            // counted from `counted`
  std::int64_t counted = 0;         // where reading began in this file
  friend bool operator==(const StreamPlace&, const StreamPlace&) = default;
};

/// Some pieces of a file: lines of JSON lines; of a text, some lines together.
struct Pieces {
  struct Piece {
    std::size_t begin = 0, size = 0;  // in `bytes`
    std::int64_t line = 1;
  };
  std::string path;  // for messages
  std::string bytes;
  StreamPlace first;  // where `bytes` begins
  std::vector<Piece> all;

  StreamPlace place(std::size_t i) const;
  std::string_view text(std::size_t i) const {
    return std::string_view(bytes).substr(all[i].begin, all[i].size);
  }
};

/// Reads without an end. Which pieces there are depends on the files and on where it begins alone.
class PieceReader {
 public:
  PieceReader(const StreamFiles& files, const StreamPlace& begin);
  /// The next pieces, at least one. Errors: as of Contents; a line that is too long; a pass over
  /// the files without a piece.
  void next(Pieces& out);
  /// Bytes on the disk that were read.
  std::int64_t file_bytes_read() const {
    return done_ + (contents_ ? contents_->file_bytes_read() : 0);
  }

 private:
  void open();

  const StreamFiles& files_;
  StreamPlace at_;  // of what comes next
  std::unique_ptr<Contents> contents_;
  std::string rest_;  // read, and no whole piece
  std::int64_t done_ = 0;
  bool some_ = false;  // a piece of this pass
};

/// The place of the first document that begins at byte `offset` or behind it, of all files one
/// behind another. Errors: as of Contents; Fault::Data: there are not so many bytes.
StreamPlace place_of_byte(const StreamFiles& files, std::int64_t offset);

/// What pieces are encoded with. All functions may be called from any thread.
class PieceEncoder {
 public:
  PieceEncoder(const StreamFiles& files, const Vocabulary& vocabulary);
  /// Adds the tokens of a piece: of JSON lines the text and its end, of a line without a text
  /// nothing. Errors: Fault::Data, with the line: bytes that are not UTF-8; as of cells_in_line.
  void add(const Pieces& pieces, std::size_t i, std::vector<std::int32_t>& ids) const;

 private:
  const StreamFiles& files_;
  const Vocabulary& vocabulary_;
  std::vector<std::int32_t> end_;
};

}  // namespace tessera
