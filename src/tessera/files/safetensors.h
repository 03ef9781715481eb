#pragma once
/// safetensors files: `u64 N | N bytes of JSON header | tensor bytes to the end of the file`, all
/// little-endian.
///
/// The reader is strict, because a file comes from outside: it trusts no number before it has
/// compared it with the size of the file, and accepts no byte that belongs to no tensor or to two.
/// Facts: the format's own text and reference reader.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/file.h"
#include "tessera/tensor/host_tensor.h"
#include "tessera/tensor/type.h"

namespace tessera {

/// Longest header, in bytes, that is read or written.
inline constexpr std::int64_t kMaxSafetensorsHeader = 100'000'000;

struct StoredTensor {
  std::string name;
  TensorType type;
  std::int64_t begin = 0, end = 0;  // bytes from the start of the data section
  /// "U8": a dtype that nothing here computes with, in place of type.dtype. Empty: it is that.
  std::string other_dtype = {};

  std::int64_t bytes() const { return end - begin; }
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

enum class OtherDTypes { Refuse, Keep };

/// What a header says.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their bytes
  SafetensorsMetadata metadata;
};

/// Reads the JSON of a header. The tensors tile exactly `data_bytes`: no gap, no overlap, no rest.
///
/// dtypes: F32, F64, BF16, F16, I32, I64, BOOL. Another one of the format's is an error that names
/// it, or, with OtherDTypes::Keep, StoredTensor::other_dtype.
/// Errors: Fault::Checkpoint; each names `path` and, where there is one, the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes,
                                           const std::string& path,
                                           OtherDTypes others = OtherDTypes::Refuse);

/// An open file. Tensors are read on demand, from any thread, without mapping the file into memory
/// (a mapped file that another process cuts short kills its reader).
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path, OtherDTypes others = OtherDTypes::Refuse);

  const std::string& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const SafetensorsMetadata& metadata() const { return header_.metadata; }

  /// The tensor of that name, or nullptr.
  const StoredTensor* find(std::string_view name) const;
  /// The same; a missing tensor is an error that names the nearest ones.
  const StoredTensor& at(std::string_view name) const;

  /// Fills `out` with the bytes of a tensor from its byte `first` on. `out` may end before the
  /// tensor does.
  void read(const StoredTensor& tensor, std::int64_t first, std::span<std::byte> out) const;
  /// The same from its element `first` on, as f32. Errors: Fault::Checkpoint: it is not of f32,
  /// f64, bf16 or f16.
  void read_floats(const StoredTensor& tensor, std::int64_t first, std::span<float> out) const;
  HostTensor load(std::string_view name) const;

 private:
  InputFile file_;
  SafetensorsHeader header_;
  std::int64_t data_begin_ = 0;
};

/// A tensor to write. `fill` is called with consecutive pieces in order: (first byte, buffer to
/// fill).
struct TensorSource {
  std::string name;
  TensorType type;
  std::function<void(std::int64_t first, std::span<std::byte> out)> fill;

  /// From bytes that outlive the writing.
  static TensorSource of(std::string name, TensorType type, std::span<const std::byte> bytes);
};

/// Takes the bytes of a file in order.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Writes a file to a sink. The bytes depend on nothing but the tensors and the metadata: tensors
/// are sorted by dtype, wide ones first, so that each is aligned, then by name; the header is
/// padded with spaces to a multiple of 8.
///
/// Errors:  Fault::Usage: two tensors of one name, a name or a value that is not UTF-8, a header
/// that is too long.
void write_safetensors(const ByteSink& sink, std::vector<TensorSource> tensors,
                       const SafetensorsMetadata& metadata);

/// The same to a file that appears only when it is complete (AtomicFile).
void write_safetensors(const std::string& path, std::vector<TensorSource> tensors,
                       const SafetensorsMetadata& metadata);

}  // namespace tessera
