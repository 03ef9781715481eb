#include "tessera/data/streaming/pieces.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/data/rows.h"
#include "tessera/files/json_cells.h"
#include "tessera/token_files/permutation.h"

namespace tessera {

namespace {

constexpr std::size_t kReadBytes = 1 << 18;
/// A piece of a text has at least so many bytes, and ends with a line. Tokens do not cross its end.
constexpr std::size_t kPieceBytes = 1 << 14;

/// The end of the piece that begins at `begin`; npos: it is not there.
std::size_t end_of_piece(std::string_view bytes, std::size_t begin, bool lines) {
  const std::size_t from = lines ? begin : begin + kPieceBytes - 1;
  const std::size_t newline = from < bytes.size() ? bytes.find('\n', from) : bytes.npos;
  return newline == bytes.npos ? newline : newline + 1;
}

}  // namespace

const std::string& StreamFiles::file(std::int64_t pass, std::int64_t number) const {
  const std::uint64_t i = permute(static_cast<std::uint64_t>(number), paths.size(), key,
                                  static_cast<std::uint64_t>(pass));
  return paths[static_cast<std::size_t>(i)];
}

StreamPlace Pieces::place(std::size_t i) const {
  StreamPlace out = first;
  out.offset += static_cast<std::int64_t>(all[i].begin);
  out.line = all[i].line;
  return out;
}

PieceReader::PieceReader(const StreamFiles& files, const StreamPlace& begin)
    : files_(files), at_(begin), some_(begin != StreamPlace()) {}

void PieceReader::open() {
  if (at_.file == std::ssize(files_.paths)) {
    if (!some_)
      fail(Fault::Data, "'", files_.paths.front(), "'",
           files_.paths.size() > 1 ? " and the files beside it have" : " has",
           " no text; give files with texts");
    at_ = {at_.pass + 1};
    some_ = false;
  }
  contents_ = std::make_unique<Contents>(files_.file(at_.pass, at_.file));
  contents_->skip_to(at_.offset);
}

void PieceReader::next(Pieces& out) {
  const bool lines = !files_.column.empty();
  out.all.clear();
  while (out.all.empty()) {
    if (!contents_) open();
    out.path = contents_->path();
    if (at_.counted > 0) out.path += text(" from byte ", at_.counted);
    out.first = at_;
    out.bytes = std::exchange(rest_, "");
    const std::size_t had = out.bytes.size();
    out.bytes.resize(had + kReadBytes);
    const std::size_t got =
        contents_->read(std::as_writable_bytes(std::span(out.bytes)).subspan(had));
    out.bytes.resize(had + got);
    const bool ends = got < kReadBytes;
    std::size_t begin = 0;
    const auto add = [&](std::size_t end) {
      out.all.push_back({begin, end - begin, at_.line});
      at_.line += std::ranges::count(out.text(out.all.size() - 1), '\n');
      begin = end;
    };
    for (std::size_t end = 0; (end = end_of_piece(out.bytes, begin, lines)) != out.bytes.npos;)
      add(end);
    if (ends && begin < out.bytes.size()) {
      if (out.bytes.back() != '\n') out.bytes += '\n';  // the next file begins a line
      add(out.bytes.size());
    }
    rest_ = out.bytes.substr(begin);
    require_line_length(std::ssize(rest_), {&out.path, at_.line});
    at_.offset += static_cast<std::int64_t>(begin);
    some_ = some_ || !out.all.empty();
    if (!ends) continue;
    done_ += contents_->file_bytes_read();
    contents_.reset();
    at_ = {at_.pass, at_.file + 1};
  }
}

StreamPlace place_of_byte(const StreamFiles& files, std::int64_t offset) {
  if (offset == 0) return {};
  StreamPlace out;
  std::int64_t before = 0;  // bytes of the files before
  for (; out.file < std::ssize(files.paths); ++out.file) {
    Contents contents(files.file(0, out.file));
    std::string part(kReadBytes, '\0');
    const auto read = [&] { return contents.read(std::as_writable_bytes(std::span(part))); };
    const std::int64_t wanted = offset - before;
    if (!contents.packed() && contents.file_bytes() < wanted) {
      before += contents.file_bytes();
      continue;
    }
    if (!contents.packed()) contents.skip_to(std::max<std::int64_t>(wanted - 1, 0));
    // The end of the line that has the byte before.
    while (true) {
      const std::int64_t at = contents.offset();
      const std::string_view got = std::string_view(part).substr(0, read());
      const std::int64_t from = std::max<std::int64_t>(wanted - 1 - at, 0);
      const std::size_t newline =
          from < std::ssize(got) ? got.find('\n', static_cast<std::size_t>(from)) : got.npos;
      if (newline != got.npos) {
        out.offset = out.counted = at + static_cast<std::int64_t>(newline) + 1;
        return out;
      }
      if (got.size() == part.size()) continue;
      if (contents.offset() < wanted) break;
      ++out.file;  // its last line has no end
      if (out.file < std::ssize(files.paths)) return out;
      return {1};
    }
    before += contents.offset();
  }
  fail(Fault::Data, "stream-offset is ", offset, ", but the data has ", before,
       " bytes; give fewer");
}

PieceEncoder::PieceEncoder(const StreamFiles& files, const Vocabulary& vocabulary)
    : files_(files), vocabulary_(vocabulary) {
  if (!files_.column.empty()) end_ = document_end(vocabulary_);
}

void PieceEncoder::add(const Pieces& pieces, std::size_t i, std::vector<std::int32_t>& ids) const {
  std::string_view bytes = pieces.text(i);
  const LinePlace place{&pieces.path, pieces.all[i].line};
  if (pieces.place(i).offset == 0 && bytes.starts_with(kByteOrderMark) &&
      vocabulary_.kind() != VocabularyKind::Bytes)
    bytes.remove_prefix(kByteOrderMark.size());
  std::string own;
  if (files_.column.empty()) {
    if (vocabulary_.kind() != VocabularyKind::Bytes) {
      if (const std::size_t bad = find_invalid_utf8(bytes); bad != bytes.npos)
        fail(Fault::Data, "'", *place.path, "' line ",
             place.line + std::ranges::count(bytes.substr(0, bad), '\n'),
             ": a byte is not UTF-8; convert the file to UTF-8, or leave it out");
      if (bytes.find("\r\n") != bytes.npos) {
        own = bytes;
        for (std::size_t at = 0; (at = own.find("\r\n", at)) != own.npos;) own.erase(at, 1);
        bytes = own;
      }
    }
  } else {
    if (bytes.find_first_not_of(" \t\r\n") == bytes.npos) return;
    try {
      own = cells_in_line(bytes, {&files_.column, 1}, place).front();
    } catch (const Error&) {
      if (!files_.skip_bad_rows) throw;
    }
    if (own.empty()) return;
    bytes = own;
  }
  try {
    const std::vector<std::int32_t> made = vocabulary_.encode(bytes);
    ids.insert(ids.end(), made.begin(), made.end());
    ids.insert(ids.end(), end_.begin(), end_.end());
  } catch (const Error& error) {
    throw error.with(text("in line ", place.line, " of '", *place.path, "'"));
  }
}

}  // namespace tessera
