#pragma once
/// A training step in f64, on one device and on meshes, to be held against what PyTorch computes.

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/ops/interpret.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/preview.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/train/step.h"
#include "train/one_device.h"
#include "worst.h"

namespace tessera {

/// That of the files in tests/golden.
inline OptimizerConfig golden_recipe() {
  OptimizerConfig c;
  c.beta2 = 0.95;
  c.weight_decay = 0.1;
  c.clip = 0.5;
  c.schedule = {ScheduleKind::Cosine, 1e-2, 1e-3, 3, 10};
  return c;
}

/// Largest difference, relative to the largest magnitude of the reference.
inline double difference(const HostTensor& a, const HostTensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double worst = 0, scale = 1e-30;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    worst = worse_of(worst, std::abs(a.at(i) - b.at(i)));
    scale = std::max(scale, std::abs(b.at(i)));
  }
  return worst / scale;
}

/// On what a graph is run, in f64: as it is, or by all ranks of a mesh.
struct GoldenMesh {
  const char* name;
  ParallelConfig parallel;
};
inline const GoldenMesh kGoldenMeshes[] = {{"one device", {}},
                                           {"dp 2 x tp 2", parallel_of(2, 2, 1, true, 0, 1)},
                                           {"zero-3 over 2", parallel_of(2, 1, 1, false, 3, 1)}};

class GoldenRun {
 public:
  GoldenRun(const Graph& graph, const GoldenMesh& mesh, const ModelConfig& model) : graph_(graph) {
    how_.f64 = true;
    if (mesh.parallel.devices > 1)
      program_ = program_of(graph, strategy_of(mesh.parallel, BatchSplit::Cut, model));
  }
  /// The outputs by name; next values of states go into `in`.
  std::map<std::string, HostTensor> operator()(Bindings& in) const {
    std::map<std::string, HostTensor> out;
    if (program_) out = interpret_program(*program_, in, how_);
    const std::vector<HostTensor> whole =
        program_ ? std::vector<HostTensor>() : interpret(graph_, in, how_);
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const auto& [kind, name, value] = graph_.outputs()[i];
      const bool next = kind == Output::Kind::Next;
      if (next) in.states[name] = program_ ? out.at("next " + name) : whole[i];
      if (!next && !program_) out[name] = whole[i];
    }
    return out;
  }

 private:
  static Program program_of(const Graph& graph, const Strategy& strategy) {
    return fuse(partition(propagate(add_uses(preview(simplify(graph), strategy.mesh)), strategy)));
  }

  const Graph& graph_;
  Interpretation how_;
  std::optional<Program> program_;
};

}  // namespace tessera
