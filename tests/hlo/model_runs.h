#pragma once
/// Runs of tiny models, of which each node of each program is looked at.

#include <string>
#include <vector>

#include "tessera/passes/program.h"

namespace tessera::test {

struct ModelRun {
  const char* family;
  const char* flags;    // of tessera train, but for the sizes of a tiny model
  bool always = false;  // looked at by every run of the tests; the others with TESSERA_ALL_NODES
  /// All that the run executes, of the first rank of every stage.
  std::vector<Program> programs() const;
};

const std::vector<ModelRun>& model_runs();

/// True of a training step.
bool trains(const Program& program);

}  // namespace tessera::test
