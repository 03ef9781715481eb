#pragma once
/// The parts of a save: how tensors are divided, the files that one process writes, and the commit
/// of what all have written.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_files.h"
#include "tessera/checkpoint/checkpoint_manifest.h"

namespace tessera {

inline constexpr const char* kDataPrefix = "data-";

/// A cell of a tensor that this process writes.
struct CheckpointPiece {
  std::size_t tensor = 0;            // of all, in the order of names
  std::int64_t cell = 0;             // of its grid
  const std::byte* bytes = nullptr;  // its first element
  Shape strides;                     // of the memory that it lies in, in elements; the last is 1
};

/// Where a piece was written.
struct WrittenPiece {
  std::size_t tensor = 0;
  std::int64_t cell = 0;
  ManifestSlice slice;  // its file counts those of the part
  friend bool operator==(const WrittenPiece&, const WrittenPiece&) = default;
};

/// What one process wrote.
struct WrittenPart {
  std::vector<ManifestFile> files;
  std::vector<WrittenPiece> pieces;
  friend bool operator==(const WrittenPart&, const WrittenPart&) = default;
};

/// As text, from one rank to another.
std::string to_text(const WrittenPart& part);
WrittenPart parse_part(std::string_view lines);

/// Writes and flushes files named PREFIX00000.safetensors, ... into `folder`. Takes a buffer of
/// kBlockBytes. `tensors` say names, types and grids. Errors: Fault::Resource.
WrittenPart write_part(const FileCalls& calls, const std::string& folder, const std::string& prefix,
                       std::span<const ManifestTensor> tensors,
                       std::span<const CheckpointPiece> pieces, std::int64_t file_bytes);

/// What write_part will return but for the hashes, which are placeholders; of the pieces only their
/// cells are looked at. Nothing is written.
WrittenPart planned_part(const std::string& prefix, std::span<const ManifestTensor> tensors,
                         std::span<const CheckpointPiece> pieces, std::int64_t file_bytes);

/// Bytes of all files of a checkpoint of these parts, written or planned: the sum of their sizes.
std::int64_t save_bytes(const CheckpointRecord& record, std::vector<ManifestTensor> tensors,
                        const std::vector<WrittenPart>& parts);

/// Writes the manifest of `parts`, which have every cell of `tensors` once, gives the folder its
/// final name in `folder`, prunes, and returns the new path. Errors as of save_checkpoint.
std::string commit_parts(const std::string& folder, UnfinishedFolder& aside,
                         const CheckpointRecord& record, std::vector<ManifestTensor> tensors,
                         const std::vector<WrittenPart>& parts, const SaveOptions& options);

}  // namespace tessera
