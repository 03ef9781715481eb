#pragma once
/// Token files of Megatron-LM: PREFIX.bin has token ids back to back, PREFIX.idx says where each
/// sequence begins and which sequences make a document.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/file.h"

namespace tessera {

/// The type of the numbers in a .bin file; the value is the code in its .idx file.
enum class TokenType : std::uint8_t { U8 = 1, I8, I16, I32, I64, F64, F32, U16 };
/// "uint16"
std::string_view to_text(TokenType type);
std::int64_t bytes_of(TokenType type);
/// The type in which ids below `vocabulary` are stored: uint16 below 65500, else int32.
TokenType token_type_for(std::int64_t vocabulary);

/// What every .idx file begins with.
inline constexpr std::string_view kIndexMagic{"MMIDIDX\0\0", 9};
inline constexpr std::uint64_t kIndexVersion = 1;
inline constexpr std::int64_t kIndexHeaderBytes = 34;

/// The first bytes of a .idx file.
struct IndexHeader {
  TokenType type = TokenType::U16;
  std::int64_t sequences = 0;
  std::int64_t boundaries = 0;  // of documents: one more than there are documents

  // Where the three tables begin: i32 lengths in tokens, i64 byte offsets in .bin, i64 first
  // sequence of each document, and the number of sequences.
  std::int64_t lengths_at() const { return kIndexHeaderBytes; }
  std::int64_t pointers_at() const { return lengths_at() + 4 * sequences; }
  std::int64_t boundaries_at() const { return pointers_at() + 8 * sequences; }
  std::int64_t end() const { return boundaries_at() + 8 * boundaries; }
};

/// Errors: Fault::Data: not such a file; another version; an unknown type; counts for which the
/// file is too short or too long. `path` is for messages.
IndexHeader parse_index_header(std::string_view bytes, std::int64_t file_bytes,
                               const std::string& path);

/// The tables of a .idx file, checked from front to back in blocks.
class IndexCheck {
 public:
  IndexCheck(const IndexHeader& header, std::int64_t bin_bytes, std::string path);
  /// Lengths and byte offsets of the next sequences. Errors: Fault::Data: a negative length; a
  /// sequence that begins before the one before it ends, or that does not end inside .bin.
  void sequences(std::span<const std::int32_t> lengths, std::span<const std::int64_t> pointers);
  /// Errors: Fault::Data: boundaries that do not begin with 0, that fall, or that leave the table.
  void boundaries(std::span<const std::int64_t> next);
  /// All was seen. Errors: Fault::Data: bytes of .bin that no sequence holds at the end; the last
  /// boundary is not the number of sequences.
  void finish() const;

  std::int64_t tokens() const { return tokens_; }

 private:
  IndexHeader header_;
  std::int64_t bin_bytes_ = 0;
  std::string path_;
  std::int64_t sequence_ = 0, end_ = 0, tokens_ = 0;  // end_: in .bin, of what was seen
  std::int64_t boundary_ = 0, last_ = 0;
};

/// A pair of token files. They are never loaded or mapped: what is asked for is read then and
/// there, so a dataset costs no memory whatever its size, and a file that another process cuts
/// short is an error with words and not a signal. All functions may be called from any thread.
class IndexedDataset {
 public:
  /// Reads PREFIX.idx from front to back and holds it against the size of PREFIX.bin. Errors:
  /// Fault::Data: as above, and numbers that are no integers.
  explicit IndexedDataset(std::string prefix);
  /// Both files are there.
  static bool exists(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return header_.type; }
  std::int64_t num_sequences() const { return header_.sequences; }
  std::int64_t num_documents() const { return header_.boundaries - 1; }
  std::int64_t num_tokens() const { return tokens_; }
  /// XXH3-128 of the index: of lengths and boundaries, and thereby of where each token lies.
  const std::string& digest() const { return digest_; }

  /// Lengths of sequences [first, first + out.size()), in tokens.
  void lengths(std::int64_t first, std::span<std::int32_t> out) const;
  std::vector<std::int32_t> lengths() const;
  /// The first sequence of documents [first, first + out.size()); that of num_documents() is
  /// num_sequences().
  void boundaries(std::int64_t first, std::span<std::int64_t> out) const;
  std::vector<std::int64_t> boundaries() const;

  /// Ids of a sequence from its token `offset` on. Errors: Fault::Data: the sequence is shorter; an
  /// id below 0 or not below `vocabulary`.
  void read(std::int64_t sequence, std::int64_t offset, std::int64_t vocabulary,
            std::span<std::int32_t> out) const;
  /// As many of them as there are, at most out.size(); returns how many. An `offset` behind the end
  /// is an error too.
  std::size_t read_up_to(std::int64_t sequence, std::int64_t offset, std::int64_t vocabulary,
                         std::span<std::int32_t> out) const;
  /// All of it.
  std::vector<std::int32_t> read(std::int64_t sequence, std::int64_t vocabulary) const;

 private:
  struct Place {
    std::int64_t length = 0, pointer = 0;  // in tokens; in bytes of .bin
  };
  Place place_of(std::int64_t sequence) const;
  void read_at(const Place& place, std::int64_t sequence, std::int64_t offset,
               std::int64_t vocabulary, std::span<std::int32_t> out) const;

  std::string prefix_;
  InputFile index_, bin_;
  IndexHeader header_;
  std::int64_t tokens_ = 0;
  std::string digest_;
};

}  // namespace tessera
