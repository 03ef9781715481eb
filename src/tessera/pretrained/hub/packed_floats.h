#pragma once
/// Matrices of experts in 4 bits, as gpt-oss is published: MXFP4 (OCP Microscaling Formats 1.0, 2023,
/// sections 5.3.3 and 6.1), of blocks of 32 numbers along what a product sums over.

#include <cstdint>
#include <span>

#include "tessera/files/safetensors.h"

namespace tessera {

inline constexpr const char *kBlocksName = "_blocks", *kScalesName = "_scales";

/// Of U8 [experts, out, blocks, 16] and U8 [experts, out, blocks]: two numbers a byte, the lower half
/// first, times 2^(scale - 127).
struct PackedFloats {
  const SafetensorsFile *blocks_file, *scales_file;
  const StoredTensor *blocks, *scales;

  /// Errors: Fault::Checkpoint: sizes that do not fit.
  void require_fit() const;
  /// What it stands for: [experts, in, out].
  Shape shape() const;
  /// Its elements from `first` on, in that order.
  void read(std::int64_t first, std::span<float> out) const;
};

}  // namespace tessera
