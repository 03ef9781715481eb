#pragma once
/// A tiny training step on one device, in f64 with dropout, and a comparison of others with it.

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/models/parallel.h"
#include "tessera/passes/compute_in.h"
#include "tessera/passes/interpret_program.h"
#include "train/tiny_step.h"

namespace tessera {

class OneDevice {
 public:
  explicit OneDevice(const std::string& family, std::int64_t layers = 2,
                     const OptimizerConfig& optimizer = {},
                     const std::optional<Precision>& precision = {})
      : OneDevice(task_of(tiny(family, layers)), optimizer, precision) {}
  /// In 16 bits with `precision`, of which in f64 nothing is rounded.
  explicit OneDevice(const Task& task, OptimizerConfig optimizer = {},
                     const std::optional<Precision>& precision = {}) {
    optimizer.schedule.kind = ScheduleKind::Constant;
    graph = with_gradients(train_step(task, optimizer, 12));
    if (precision) graph = compute_in(graph, *precision);
    inputs_ = random_inputs(graph, task);
    how_.f64 = true;
    whole_ = interpret(graph, inputs_, how_);
  }

  /// What is wrong with the outputs of a program, or of a pipeline's stages; empty where they are
  /// the same.
  std::string wrong(const Program& program) const {
    return wrong(interpret_program(program, inputs_, how_));
  }
  std::string wrong(const std::vector<Program>& stages) const {
    return wrong(interpret_stages(stages, inputs_, how_));
  }

  Graph graph;

 private:
  std::string wrong(const std::map<std::string, HostTensor>& outputs) const {
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      const Output& output = graph.outputs()[i];
      const auto found =
          outputs.find(output.kind == Output::Kind::Next ? "next " + output.name : output.name);
      if (found == outputs.end()) return output.name + " is missing";
      // Adam turns the zero gradient of a key bias into rounding noise of up to twice the learning
      // rate.
      const double bound = output.name.ends_with("kv.bias") ? 2e-3 : 1e-10;
      for (std::int64_t e = 0; e < whole_[i].numel(); ++e) {
        const double one = whole_[i].at(e), other = found->second.at(e);
        // Gradients that a loss scale multiplies are large.
        if (!(std::abs(one - other) <= bound * std::max(1.0, std::abs(one))))
          return text(output.name, " [", e, "] is ", other, ", not ", one);
      }
    }
    return "";
  }

  Bindings inputs_;
  Interpretation how_;
  std::vector<HostTensor> whole_;
};

/// The mesh dp x cp x tp with ZeRO `level`.
inline ParallelConfig parallel_of(std::int64_t dp, std::int64_t tp, std::int64_t cp, bool sequence,
                                  int level, std::int64_t micro_batches) {
  return {.devices = dp * tp * cp,
          .tensor = tp,
          .context = cp,
          .sequence = sequence,
          .shard_optimizer = level > 0,
          .shard_gradients = level > 1,
          .shard_parameters = level > 2,
          .micro_batches = micro_batches};
}

/// Experts over `n` neighbours along dp.
inline ParallelConfig experts(std::int64_t n, ParallelConfig out) {
  out.experts = n;
  return out;
}

}  // namespace tessera
