#pragma once
/// How modules are written.

#include <cstddef>
#include <cstdint>

namespace tessera::hlo {

struct EmitOptions {
  std::uint64_t seed = 1;  // of random ops
  /// Products of f32 by units of TF32; else with all digits.
  bool tf32 = false;
  /// Attention whose scores have more elements than this on one rank is computed in blocks of keys,
  /// so many that no more scores are there at a time; but of `fewest_keys` at least, as fewer make
  /// products slow.
  std::int64_t most_scores = std::int64_t{1} << 24, fewest_keys = 128;
  /// Nodes of equal text, of more lines than this, become calls of one function: a fifth of the
  /// text of deep models. 0: none do.
  int lines_of_call = 6;
  /// So do those of more bytes: collectives, which name every rank of every group.
  std::size_t bytes_of_call = 1000;
  /// Values placed in host memory are moved there: the plugin has `annotate_device_placement`.
  /// Else they stay on the device.
  bool pinned_host = false;
  /// Attention by cuDNN's kernels where they take the case (ops/cudnn_attention.h): the plugin is
  /// XLA's for CUDA, and its GPUs are of compute capability 8.0 or above.
  bool cudnn_attention = false;
};

}  // namespace tessera::hlo
