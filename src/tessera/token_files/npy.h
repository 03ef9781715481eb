#pragma once
/// NumPy's .npy files of integers: the form in which Megatron-LM keeps its sample indices.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/file.h"

namespace tessera {

/// Little-endian integers.
enum class NpyType { I16, I32, I64, U16, U32, U64 };
/// "<i4"
std::string_view to_text(NpyType type);
std::int64_t bytes_of(NpyType type);

struct NpyHeader {
  NpyType type = NpyType::I64;
  std::vector<std::int64_t> shape;  // of one or two dims; row-major
  std::int64_t begin = 0;           // of the data, in the file

  std::int64_t elements() const;
};

/// What numpy.save writes before the data of an array.
std::string npy_header(NpyType type, std::span<const std::int64_t> shape);

/// Reads the header from the first bytes of a file of `file_bytes` (kNpyHeaderBytes of them are
/// enough, or all). Errors: Fault::Data: not such a file; another version, type, order or number of
/// dims; data that is shorter or longer than the shape says. `path` is for messages.
NpyHeader parse_npy_header(std::string_view bytes, std::int64_t file_bytes,
                           const std::string& path);
inline constexpr std::int64_t kNpyHeaderBytes = 4096;

/// An array of integers in memory or in a .npy file. Of a file only what is asked for is read, each
/// time anew, so an array may be larger than memory. All functions may be called from any thread.
class IntegerArray {
 public:
  /// Rows of `columns` values; 0: an array of one dim.
  template <typename T>
  IntegerArray(std::span<const T> values, NpyType type, std::int64_t columns = 0)
      : IntegerArray(std::as_bytes(values), type, columns) {}
  IntegerArray(std::span<const std::byte> values, NpyType type, std::int64_t columns);
  /// Errors: as of InputFile and parse_npy_header.
  static IntegerArray open(const std::string& path);

  NpyType type() const { return header_.type; }
  const std::vector<std::int64_t>& shape() const { return header_.shape; }
  std::int64_t elements() const { return header_.elements(); }
  /// The file; empty: in memory.
  std::string path() const { return file_ == nullptr ? "" : file_->path(); }

  /// Elements [first, first + out.size()), in row-major order.
  void read(std::int64_t first, std::span<std::int64_t> out) const;
  std::int64_t at(std::int64_t i) const;

  /// What numpy.save writes. Errors: Fault::Resource.
  void save(const std::string& path) const;

 private:
  IntegerArray() = default;

  NpyHeader header_;
  std::shared_ptr<const InputFile> file_;  // shared by copies
  std::shared_ptr<const std::vector<std::byte>> memory_;
};

}  // namespace tessera
