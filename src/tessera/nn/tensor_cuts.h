#pragma once
/// Which parameters tensor parallelism splits, and along which dim.

#include <span>
#include <string_view>

namespace tessera {

/// The tensor parallel axis splits dim `dim` of the parameters whose paths match.
struct TensorCut {
  std::string_view paths;  // '*' stands for any characters
  int dim, ndim;           // the second: of all dims; dim -1: it is whole
  bool table = false;  // of token embeddings, which ParallelConfig::whole_embeddings leaves whole
  bool of_experts = false;  // dim 0 counts experts, which the expert parallel axis splits
};

/// Of the layers in nn/transformer.h, and of token embeddings and output projections by their usual
/// names. The first product of a sub-layer is split by its results, the second by what it sums
/// over, embedding and head by the vocabulary.
std::span<const TensorCut> transformer_cuts();

}  // namespace tessera
