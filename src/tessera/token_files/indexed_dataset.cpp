#include "tessera/token_files/indexed_dataset.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/hash.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::int64_t kIndexBlock = 1 << 16;  // entries that are read at a time

struct TokenTypeName {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<TokenTypeName, 8> kTokenTypes = {{{"uint8", 1},
                                                       {"int8", 1},
                                                       {"int16", 2},
                                                       {"int32", 4},
                                                       {"int64", 8},
                                                       {"float64", 8},
                                                       {"float32", 4},
                                                       {"uint16", 2}}};

const TokenTypeName& row_of(TokenType type) {
  return kTokenTypes.at(static_cast<std::size_t>(type) - 1);
}

template <typename T>
void read_numbers(const InputFile& file, std::int64_t at, std::span<T> out) {
  file.read(at, std::as_writable_bytes(out));
}

template <typename T>
std::span<T> part_of(std::vector<T>& all, std::int64_t count) {
  return std::span(all).first(static_cast<std::size_t>(count));
}

/// Calls `take` with the blocks of a table of `count` numbers that begins at `at`.
template <typename T, typename Take>
void in_blocks(const InputFile& file, std::int64_t at, std::int64_t count, const Take& take) {
  std::vector<T> block(static_cast<std::size_t>(std::min(count, kIndexBlock)));
  for (std::int64_t first = 0; first < count; first += kIndexBlock) {
    const std::span<T> part = part_of(block, std::min(kIndexBlock, count - first));
    read_numbers(file, at + first * static_cast<std::int64_t>(sizeof(T)), part);
    take(first, part);
  }
}

/// Ids from the numbers of a .bin; the place of the first that is out of range, or out.size().
template <typename T>
std::size_t ids_from(const std::byte* from, std::int64_t vocabulary, std::span<std::int32_t> out,
                     std::int64_t& bad) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    const auto id = static_cast<std::int64_t>(value);
    if (id < 0 || id >= vocabulary) {
      bad = id;
      return i;
    }
    out[i] = static_cast<std::int32_t>(id);
  }
  return out.size();
}

std::size_t ids_from(TokenType type, const std::byte* from, std::int64_t vocabulary,
                     std::span<std::int32_t> out, std::int64_t& bad) {
  switch (type) {
    case TokenType::U8: return ids_from<std::uint8_t>(from, vocabulary, out, bad);
    case TokenType::I8: return ids_from<std::int8_t>(from, vocabulary, out, bad);
    case TokenType::I16: return ids_from<std::int16_t>(from, vocabulary, out, bad);
    case TokenType::I32: return ids_from<std::int32_t>(from, vocabulary, out, bad);
    case TokenType::I64: return ids_from<std::int64_t>(from, vocabulary, out, bad);
    case TokenType::U16: return ids_from<std::uint16_t>(from, vocabulary, out, bad);
    case TokenType::F32:
    case TokenType::F64: break;
  }
  check(false, "ids of type ", to_text(type));
  return 0;
}

}  // namespace

std::string_view to_text(TokenType type) { return row_of(type).name; }
std::int64_t bytes_of(TokenType type) { return row_of(type).bytes; }

TokenType token_type_for(std::int64_t vocabulary) {
  return vocabulary < 65500 ? TokenType::U16 : TokenType::I32;
}

IndexHeader parse_index_header(std::string_view bytes, std::int64_t file_bytes,
                               const std::string& path) {
  const auto number = [&](std::size_t at) {
    std::uint64_t out = 0;
    std::memcpy(&out, bytes.data() + at, sizeof out);
    return out;
  };
  if (std::ssize(bytes) < kIndexHeaderBytes || !bytes.starts_with(kIndexMagic))
    fail(Fault::Data, "'", path, "' is not an index of token files: it ",
         bytes.starts_with("TNTIDX") ? "is one of the older kind that begins with TNTIDX"
                                     : "does not begin with MMIDIDX",
         "; make the files with tessera preprocess_data, or with --dataset-impl mmap");
  if (number(9) != kIndexVersion)
    fail(Fault::Data, "'", path, "' has version ", number(9), " where ", kIndexVersion,
         " is expected; make the files again with tessera preprocess_data");
  const auto code = static_cast<unsigned char>(bytes[17]);
  if (code < 1 || code > kTokenTypes.size())
    fail(Fault::Data, "'", path, "' has token type ", static_cast<int>(code),
         ", but known types are 1 to ", kTokenTypes.size(), "; the file is damaged, make it again");
  IndexHeader out;
  out.type = static_cast<TokenType>(code);
  const std::uint64_t sequences = number(18), boundaries = number(26);
  // No count of entries is above the bytes of the file, so that nothing below can overflow.
  const auto most = static_cast<std::uint64_t>(file_bytes);
  out.sequences = static_cast<std::int64_t>(std::min(sequences, most));
  out.boundaries = static_cast<std::int64_t>(std::min(boundaries, most));
  if (sequences > most || boundaries > most || out.end() > file_bytes)
    fail(Fault::Data, "'", path, "' has ", file_bytes, " bytes, too few for the ", sequences,
         " sequences and ", boundaries,
         " document boundaries of its header; it was cut short, make or copy it again");
  if (boundaries == 0)
    fail(Fault::Data, "'", path, "' has no document boundary, where at least one is expected; the ",
         "file is damaged, make it anew");
  if (out.end() + out.sequences == file_bytes && out.sequences > 0)
    fail(Fault::Data, "'", path, "' has a mode for each sequence, as files of images and text do; ",
         "give token files of text only");
  if (out.end() != file_bytes)
    fail(Fault::Data, "'", path, "' has ", file_bytes, " bytes but its header needs ", out.end(),
         "; it is damaged, make or copy it again");
  return out;
}

IndexCheck::IndexCheck(const IndexHeader& header, std::int64_t bin_bytes, std::string path)
    : header_(header), bin_bytes_(bin_bytes), path_(std::move(path)) {}

void IndexCheck::sequences(std::span<const std::int32_t> lengths,
                           std::span<const std::int64_t> pointers) {
  const std::int64_t width = bytes_of(header_.type);
  for (std::size_t i = 0; i < lengths.size(); ++i, ++sequence_) {
    const std::int64_t length = lengths[i], begin = pointers[i];
    if (length < 0)
      fail(Fault::Data, "'", path_, "': sequence ", sequence_, " has ", length,
           " tokens; the file is damaged, make or copy it again");
    if (begin < end_)
      fail(Fault::Data, "'", path_, "': sequence ", sequence_, " begins at byte ", begin,
           " of .bin, before the one before it ends, at ", end_,
           "; the file is damaged, make or copy it again");
    if (begin > bin_bytes_ || length * width > bin_bytes_ - begin)
      fail(Fault::Data, "'", path_, "': sequence ", sequence_, " has ", counted(length, "token"),
           " of ", to_text(header_.type), " from byte ", begin, ", but .bin has ", bin_bytes_,
           " bytes; .bin was cut short or belongs to another index, make or copy both again");
    end_ = begin + length * width;
    tokens_ += length;
  }
}

void IndexCheck::boundaries(std::span<const std::int64_t> next) {
  for (const std::int64_t sequence : next) {
    if (boundary_ == 0 ? sequence != 0 : sequence < last_ || sequence > header_.sequences)
      fail(Fault::Data, "'", path_, "': document ", boundary_, " begins with sequence ", sequence,
           " where ", boundary_ == 0 ? std::string("0") : text(last_, " to ", header_.sequences),
           " is expected; the file is damaged, make or copy it again");
    last_ = sequence;
    ++boundary_;
  }
}

void IndexCheck::finish() const {
  if (end_ != bin_bytes_)
    fail(Fault::Data, "'", path_, "' expects ", end_, " bytes in .bin, which has ", bin_bytes_,
         "; they do not belong together, make or copy both again");
  if (last_ != header_.sequences)
    fail(Fault::Data, "'", path_, "' has ", header_.sequences,
         " sequences, but its documents end with sequence ", last_,
         "; the file is damaged, make or copy it again");
}

IndexedDataset::IndexedDataset(std::string prefix)
    : prefix_(std::move(prefix)), index_(prefix_ + ".idx"), bin_(prefix_ + ".bin") {
  std::string begin(static_cast<std::size_t>(std::min(index_.size(), kIndexHeaderBytes)), '\0');
  index_.read(0, std::as_writable_bytes(std::span(begin)));
  header_ = parse_index_header(begin, index_.size(), index_.path());
  if (header_.type == TokenType::F32 || header_.type == TokenType::F64)
    fail(Fault::Data, "'", index_.path(), "' has numbers of type ", to_text(header_.type),
         " where token ids, which are integers, are expected; give token files of a text");
  IndexCheck check(header_, bin_.size(), index_.path());
  StreamHash hash;
  hash.update(begin);
  std::vector<std::int64_t> pointers(
      static_cast<std::size_t>(std::min(header_.sequences, kIndexBlock)));
  in_blocks<std::int32_t>(index_, header_.lengths_at(), header_.sequences,
                          [&](std::int64_t first, std::span<const std::int32_t> lengths) {
                            const std::span<std::int64_t> part =
                                part_of(pointers, std::ssize(lengths));
                            read_numbers(index_, header_.pointers_at() + first * 8, part);
                            check.sequences(lengths, part);
                            hash.update(lengths.data(), lengths.size_bytes());
                            hash.update(part.data(), part.size_bytes());
                          });
  in_blocks<std::int64_t>(index_, header_.boundaries_at(), header_.boundaries,
                          [&](std::int64_t, std::span<const std::int64_t> part) {
                            check.boundaries(part);
                            hash.update(part.data(), part.size_bytes());
                          });
  check.finish();
  tokens_ = check.tokens();
  digest_ = hash.text();
}

bool IndexedDataset::exists(const std::string& prefix) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(prefix + ".idx", ignored) &&
         std::filesystem::is_regular_file(prefix + ".bin", ignored);
}

void IndexedDataset::lengths(std::int64_t first, std::span<std::int32_t> out) const {
  check(first >= 0 && first + std::ssize(out) <= num_sequences(), "lengths from ", first);
  read_numbers(index_, header_.lengths_at() + first * 4, out);
}

std::vector<std::int32_t> IndexedDataset::lengths() const {
  std::vector<std::int32_t> out(static_cast<std::size_t>(num_sequences()));
  lengths(0, out);
  return out;
}

void IndexedDataset::boundaries(std::int64_t first, std::span<std::int64_t> out) const {
  check(first >= 0 && first + std::ssize(out) <= header_.boundaries, "boundaries from ", first);
  read_numbers(index_, header_.boundaries_at() + first * 8, out);
}

std::vector<std::int64_t> IndexedDataset::boundaries() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(header_.boundaries));
  boundaries(0, out);
  return out;
}

IndexedDataset::Place IndexedDataset::place_of(std::int64_t sequence) const {
  std::int32_t length = 0;
  Place out;
  lengths(sequence, {&length, 1});
  read_numbers(index_, header_.pointers_at() + sequence * 8, std::span(&out.pointer, 1));
  out.length = length;
  if (out.pointer < 0 || out.pointer > bin_.size())
    fail(Fault::Data, "'", index_.path(), "': sequence ", sequence, " begins at byte ", out.pointer,
         " of .bin, which has ", bin_.size(),
         "; the file changed after it was opened, start again");
  return out;
}

void IndexedDataset::read(std::int64_t sequence, std::int64_t offset, std::int64_t vocabulary,
                          std::span<std::int32_t> out) const {
  read_at(place_of(sequence), sequence, offset, vocabulary, out);
}

std::size_t IndexedDataset::read_up_to(std::int64_t sequence, std::int64_t offset,
                                       std::int64_t vocabulary, std::span<std::int32_t> out) const {
  const Place place = place_of(sequence);
  const std::int64_t there = std::min(place.length - offset, static_cast<std::int64_t>(out.size()));
  const std::span<std::int32_t> part =
      out.first(static_cast<std::size_t>(std::max(there, std::int64_t{0})));
  read_at(place, sequence, offset, vocabulary, part);
  return part.size();
}

void IndexedDataset::read_at(const Place& place, std::int64_t sequence, std::int64_t offset,
                             std::int64_t vocabulary, std::span<std::int32_t> out) const {
  if (offset < 0 || std::ssize(out) > place.length - offset)
    fail(Fault::Data, "'", index_.path(), "': ", counted(std::ssize(out), "token"), " from token ",
         offset, " of sequence ", sequence, " were expected, which has ", place.length,
         "; the files changed after they were opened, or after sample indices were made");
  if (out.empty()) return;
  const std::int64_t width = bytes_of(header_.type);
  const std::size_t bytes = out.size() * static_cast<std::size_t>(width);
  std::array<std::byte, 8192> small;
  std::vector<std::byte> large;
  if (bytes > small.size()) large.resize(bytes);
  const std::span<std::byte> raw =
      bytes > small.size() ? std::span(large) : std::span(small).first(bytes);
  bin_.read(place.pointer + offset * width, raw);
  std::int64_t bad = 0;
  constexpr std::int64_t kMostIds = std::int64_t{1} << 31;
  const std::size_t good =
      ids_from(header_.type, raw.data(), std::min(vocabulary, kMostIds), out, bad);
  if (good < out.size())
    fail(Fault::Data, "'", bin_.path(), "': token ", offset + static_cast<std::int64_t>(good),
         " of sequence ", sequence, " is ", bad, ", but the model has ids from 0 to ",
         vocabulary - 1,
         "; give the vocab-size of the tokenizer that made the files, or files for this one");
}

std::vector<std::int32_t> IndexedDataset::read(std::int64_t sequence,
                                               std::int64_t vocabulary) const {
  std::int32_t length = 0;
  lengths(sequence, {&length, 1});
  std::vector<std::int32_t> out(static_cast<std::size_t>(length));
  read(sequence, 0, vocabulary, out);
  return out;
}

}  // namespace tessera
