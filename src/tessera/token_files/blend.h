#pragma once
/// Several datasets as one: which of them a sample comes from.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/token_files/npy.h"

namespace tessera {

/// Prefixes of token files, with a weight for each or without any.
struct BlendList {
  std::vector<std::string> prefixes;
  std::vector<double> weights;  // as given; empty: none
};

/// Words as of --data-path: prefixes, or weights and prefixes by turns: "0.3 a 0.7 b". As
/// Megatron-LM reads them: an even number of words of which every other one, from the first on, is
/// a number has weights. Errors: Fault::Usage: a weight that is not above 0 or not finite, and
/// weights for some prefixes only.
BlendList parse_blend(std::span<const std::string> words);

/// Weights over their sum, as NumPy divides them.
std::vector<double> normalised(std::span<const double> weights);

/// For each dataset how many of `samples` it is asked for: of its share, rounded up, the part
/// `surplus` more, rounded up.
std::vector<std::int64_t> samples_of_parts(std::span<const double> normalised, std::int64_t samples,
                                           double surplus = 0);
/// megatron-core's surplus.
inline constexpr double kBlendSurplus = 0.005;

struct BlendIndices {
  IntegerArray datasets;  // i16: which dataset a sample is of
  IntegerArray samples;   // i64: which of its samples it is
};

/// Of `size` samples: each comes from the dataset that is furthest behind its weight, the first of
/// several. Equal to megatron-core's. `weights` are normalised; at most 32766 of them.
BlendIndices blend_by_weight(std::span<const double> weights, std::int64_t size);
/// All samples of all datasets, each as often as it is there, in proportion to the sizes.
BlendIndices blend_all(std::span<const std::int64_t> sizes);

}  // namespace tessera
