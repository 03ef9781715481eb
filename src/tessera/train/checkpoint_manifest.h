#pragma once
/// manifest.json: what a checkpoint consists of, with a hash of every byte, its own included.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/train/checkpoint.h"

namespace tessera {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr std::int64_t kManifestVersion = 1;
/// Longest manifest, in bytes, that is read or written: enough for tensors of 16 TiB.
inline constexpr std::int64_t kMaxManifest = 100'000'000;
/// Every so many bytes of a slice have a hash of their own.
inline constexpr std::int64_t kBlockBytes = 8 << 20;

struct ManifestFile {
  std::string name;  // in the checkpoint's folder
  std::int64_t bytes = 0, header_bytes = 0;
  std::string hash, header_hash;  // of all bytes; of the first header_bytes
  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

/// A run of a tensor's bytes, row-major, in one file.
struct ManifestSlice {
  std::size_t file = 0;
  std::int64_t first = 0, bytes = 0;  // in the tensor
  std::int64_t at = 0;                // of its first byte in the file
  std::vector<std::string> blocks;    // hashes
  friend bool operator==(const ManifestSlice&, const ManifestSlice&) = default;
};

struct ManifestTensor {
  TensorEntry entry;
  std::vector<ManifestSlice> slices;  // in order; they tile the tensor
  friend bool operator==(const ManifestTensor&, const ManifestTensor&) = default;
};

struct Manifest {
  CheckpointRecord record;
  std::vector<ManifestFile> files;
  std::vector<ManifestTensor> tensors;  // in the order of names
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// The bytes of manifest.json. Errors: Fault::Usage: a name or a text that is not UTF-8; longer
/// than kMaxManifest.
std::string to_text(const Manifest& manifest);

/// Reads what to_text writes. What it returns is consistent: slices tile tensors and, with the
/// headers, files; there are as many hashes as blocks. Fields that it does not know are ignored.
///
/// Errors: Fault::Checkpoint, naming `path`: another byte than was written, a newer version, a
/// field that is missing or wrong.
Manifest parse_manifest(std::string_view text, const std::string& path);

/// Adds to a JSON object the last field, "hash", of all that is before its value.
std::string seal_manifest(std::string_view object);

}  // namespace tessera
