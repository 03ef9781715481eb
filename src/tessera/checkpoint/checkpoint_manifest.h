#pragma once
/// manifest.json: what a checkpoint consists of, with a hash of every byte, its own included.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/tensor_grid.h"

namespace tessera {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr std::int64_t kManifestVersion = 2;
/// Longest manifest, in bytes, that is read or written: enough for tensors of 16 TiB.
inline constexpr std::int64_t kMaxManifest = 100'000'000;
/// Longest name of a tensor, in bytes.
inline constexpr std::size_t kMaxTensorName = 4096;
/// Every so many bytes of a slice that is written have a hash of their own; at most as many in one
/// that is read.
inline constexpr std::int64_t kBlockBytes = 8 << 20;

struct ManifestFile {
  std::string name;  // in the checkpoint's folder
  std::int64_t bytes = 0, header_bytes = 0;
  std::string hash, header_hash;  // of all bytes; of the first header_bytes
  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

/// The elements of one cell, row-major, in one file.
struct ManifestSlice {
  std::size_t file = 0;
  std::int64_t at = 0;              // of its first byte in the file
  std::int64_t bytes = 0;           // of the cell
  std::vector<std::string> blocks;  // hashes
  friend bool operator==(const ManifestSlice&, const ManifestSlice&) = default;
};

struct ManifestTensor {
  TensorEntry entry;
  TensorGrid grid;                    // of the shape; of version 1 also of the elements in one row
  std::vector<ManifestSlice> slices;  // of the cells, in their order
  friend bool operator==(const ManifestTensor&, const ManifestTensor&) = default;
};

struct Manifest {
  CheckpointRecord record;
  std::int64_t block_bytes = kBlockBytes;
  std::vector<ManifestFile> files;
  std::vector<ManifestTensor> tensors;  // in the order of names
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// The bytes of manifest.json. Errors: Fault::Usage: a name or a text that is not UTF-8; a name
/// longer than kMaxTensorName; all longer than kMaxManifest.
std::string to_text(const Manifest& manifest);
/// That what a record says leaves room for tensors in a manifest: for a run that begins, which
/// could not be saved later. Errors: Fault::Data.
void require_room_for_tensors(const CheckpointRecord& record);

/// How many blocks a slice of so many bytes has, and the size of one of them.
std::int64_t count_blocks(const Manifest& manifest, std::int64_t bytes);
std::int64_t size_of_block(const Manifest& manifest, const ManifestSlice& slice,
                           std::int64_t index);

/// Reads what to_text writes, and version 1, whose slices are runs of a tensor's bytes. What it
/// returns is consistent: cells tile tensors; slices and headers tile files; there are as many
/// slices as cells and as many hashes as blocks. Fields that it does not know are ignored.
///
/// Errors: Fault::Checkpoint, naming `path`: another byte than was written, a newer version, a
/// field that is missing or wrong.
Manifest parse_manifest(std::string_view text, const std::string& path);

/// Adds to a JSON object the last field, "hash", of all that is before its value.
std::string seal_manifest(std::string_view object);

}  // namespace tessera
