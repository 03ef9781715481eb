#pragma once
/// `tessera verify`: compares a few training steps on a mesh with the same steps on one device.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/config/config.h"
#include "tessera/device/device.h"
#include "tessera/runtime/backend.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera {

/// The results of one training step, as whole tensors.
struct StepTrace {
  double loss = 0, grad_norm = 0, lr = 0;
  std::map<std::string, double> means;  // that are parts of the loss, where it has several
  std::map<std::string, HostTensor> gradients, parameters;  // by path; parameters after the step
};

/// Runs `steps` training steps of `config` (complete, with a vocabulary size) on random tokens, the
/// same on any mesh. Mixed precision computes with its copies and sums, but in f32. On ranks but 0
/// the result is empty.
std::vector<StepTrace> trace_steps(RunConfig config, std::int64_t steps, const Backend& backend,
                                   Communicator* world);

/// The largest difference of one tensor between the mesh and one device.
struct VerifyRow {
  std::string name;       // "loss", "gradient layers.0.mlp.up.weight", "parameter ..."
  std::int64_t step = 0;  // at which it was worst
  double error = 0;       // relative
  bool ok = true;
};

struct VerifyReport {
  std::vector<VerifyRow> rows;  // the worst first
  std::string mesh;             // "dp=4 tp=2"
  std::int64_t devices = 1, steps = 0;
  double tolerance = 0;
  bool rounding_left_out = false;    // of mixed precision
  std::optional<double> loss_scale;  // left out too: that with which a run begins

  const VerifyRow& worst() const { return rows.front(); }
  bool ok() const;
};

/// A tensor's error is |difference| / |one device's|, with Euclidean norms; loss, its parts and
/// gradient norm are tensors of one number. That of a gradient may be 1e-6 of the global norm whatever
/// its own: terms that cancel leave rounding, as those of question_answering's qa_outputs.bias, which
/// moves all scores alike. Elements of a
/// parameter whose gradient was rounding noise at a step (below 1e-6 of the global norm, and not
/// the same, as of a key bias under softmax: Adam makes steps of it) may differ from then on, by
/// twice the learning rate of each step so far.
VerifyReport compare_traces(const std::vector<StepTrace>& one, const std::vector<StepTrace>& mesh);

std::string to_text(const VerifyReport& report);
std::string to_json(const VerifyReport& report);

}  // namespace tessera
