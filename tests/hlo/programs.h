#pragma once
/// Programs of tiny models on meshes.

#include "tessera/passes/program.h"
#include "train/one_device.h"

namespace tessera::test {

struct ModelProgram {
  std::string name, family;
  ParallelConfig parallel;
  bool narrow = false;  // in bf16
  /// Another program than a training step: its first values, or an evaluation.
  enum class What { Train, Init, Evaluate } what = What::Train;
  Program make() const;
};

/// Several families, on one to four ranks.
const std::vector<ModelProgram>& model_programs();

}  // namespace tessera::test
