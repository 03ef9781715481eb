#pragma once
/// Updates of a few small tensors, stepped by the interpreter in f64, to be compared with formulas.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tessera/nn/optimizer.h"
#include "tessera/ops/interpret.h"

namespace tessera::test {

struct UpdatedTensor {
  const char* path;
  Shape shape;
  std::vector<double> start;
};

/// Numbers between -1 and 1 without a pattern.
inline std::vector<double> some_numbers(std::int64_t count, double seed) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(std::sin(seed * 12.9898 + static_cast<double>(i) * 78.233));
  return out;
}

/// A matrix, a vector, one that begins at zero, one that has no gradient and no decay.
inline std::vector<UpdatedTensor> updated_tensors() {
  return {{"layers.0.weight", {3, 4}, some_numbers(12, 1)},
          {"layers.0.bias", {5}, some_numbers(5, 2)},
          {"zero", {2, 2}, std::vector<double>(4, 0.0)},
          {"unused", {3}, some_numbers(3, 3)}};
}

struct UpdateBatch {
  std::vector<std::vector<double>> grads;
  double loss = 1;
};

/// Six steps; the gradient of step 2 and the loss of step 4 are not finite.
inline std::vector<UpdateBatch> update_batches() {
  std::vector<UpdateBatch> out;
  for (int step = 0; step < 6; ++step) {
    UpdateBatch batch;
    for (const UpdatedTensor& t : updated_tensors()) {
      batch.grads.push_back(some_numbers(t.shape.numel(), 10.0 * step + t.shape[0]));
      if (std::string_view(t.path) == "unused") batch.grads.back() = std::vector<double>(3, 0.0);
    }
    if (step == 2) batch.grads[1][3] = std::nan("");
    if (step == 4) batch.loss = std::numeric_limits<double>::infinity();
    out.push_back(std::move(batch));
  }
  return out;
}

/// min(1, clip / norm) of all gradients; nothing where the step is to be skipped.
inline std::optional<double> clipping(const UpdateBatch& batch, double clip) {
  double square = 0;
  for (const std::vector<double>& g : batch.grads)
    for (const double e : g) square += e * e;
  if (!std::isfinite(square) || !std::isfinite(batch.loss)) return std::nullopt;
  return clip > 0 ? std::min(1.0, clip / (std::sqrt(square) + 1e-6)) : 1.0;
}

/// The graph that `update` builds for updated_tensors(), four samples a step.
class UpdateRun {
 public:
  explicit UpdateRun(const OptimizerConfig& config) {
    Builder builder;
    std::vector<Value> parameters, grads;
    for (const UpdatedTensor& t : updated_tensors()) {
      const TensorType type{DType::F32, t.shape, {}};
      parameters.push_back(builder.state(t.path, type, Role::Parameter, {}));
      grads.push_back(builder.batch(text("d ", t.path), type));
    }
    const Value loss = builder.batch("loss", {DType::F32, {}, {}});
    const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
    const Value scale = config.loss_scale.on ? loss_scale(builder, config.loss_scale) : Value();
    update(parameters, grads, loss, samples, 4, config, scale);
    graph_ = builder.finish();
    for (const State& state : graph_.states()) {
      HostTensor value(graph_.type(state.value));
      if (value.dtype() == DType::F32) value = HostTensor(DType::F64, value.shape());
      if (is_setting(state.role)) value.set(0, state.init.value);
      in_.states.emplace(state.path, value);
    }
    for (const UpdatedTensor& t : updated_tensors()) set(in_.states.at(t.path), t.start);
  }

  void step(const UpdateBatch& batch) {
    for (std::size_t n = 0; n < batch.grads.size(); ++n) {
      HostTensor g(DType::F64, updated_tensors()[n].shape);
      set(g, batch.grads[n]);
      for (std::int64_t i = 0; i < g.numel(); ++i) g.set(i, g.at(i) * loss_scale_now());
      in_.batch.insert_or_assign(text("d ", updated_tensors()[n].path), g);
    }
    in_.batch.insert_or_assign("loss", HostTensor::scalar<double>(batch.loss));
    Interpretation how;
    how.f64 = true;
    const std::vector<HostTensor> out = interpret(graph_, in_, how);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (graph_.outputs()[i].kind == Output::Kind::Next)
        in_.states.insert_or_assign(graph_.outputs()[i].name, out[i]);
    }
  }

  const HostTensor& state(const std::string& path) const { return in_.states.at(path); }
  const Graph& graph() const { return graph_; }
  /// By which the gradients of the next step are multiplied.
  double loss_scale_now() const {
    const auto found = in_.states.find("loss_scale");
    return found == in_.states.end() ? 1 : found->second.at(0);
  }

 private:
  static void set(HostTensor& to, const std::vector<double>& from) {
    for (std::size_t i = 0; i < from.size(); ++i) to.set(static_cast<std::int64_t>(i), from[i]);
  }
  Graph graph_;
  Bindings in_;
};

inline void expect_state(const UpdateRun& run, const std::string& path,
                         const std::vector<double>& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    // A few dozen roundings of 2^-53, and a correction's power by another function.
    EXPECT_NEAR(run.state(path).at(static_cast<std::int64_t>(i)), want[i], 1e-13)
        << path << " [" << i << "]";
  }
}

}  // namespace tessera::test
