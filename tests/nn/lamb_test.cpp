/// LAMB against the paper's formulas, written out in plain loops here.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/nn/optimizer.h"
#include "tessera/ops/interpret.h"

namespace tessera {
namespace {

using Numbers = std::vector<double>;

struct Tensor {
  const char* path;
  Shape shape;
  Numbers start;
};

/// Numbers between -1 and 1 without a pattern.
Numbers some(std::int64_t count, double seed) {
  Numbers out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(std::sin(seed * 12.9898 + static_cast<double>(i) * 78.233));
  return out;
}

/// A matrix, a vector, one that begins at zero, one that has no gradient and no decay.
std::vector<Tensor> tensors() {
  return {{"layers.0.weight", {3, 4}, some(12, 1)},
          {"layers.0.bias", {5}, some(5, 2)},
          {"zero", {2, 2}, Numbers(4, 0.0)},
          {"unused", {3}, some(3, 3)}};
}

struct LambBatch {
  std::vector<Numbers> grads;
  double loss = 1;
};

/// Six steps; the gradient of step 2 and the loss of step 4 are not finite.
std::vector<LambBatch> batches() {
  std::vector<LambBatch> out;
  for (int step = 0; step < 6; ++step) {
    LambBatch batch;
    for (const Tensor& t : tensors()) {
      batch.grads.push_back(some(t.shape.numel(), 10.0 * step + t.shape[0]));
      if (std::string_view(t.path) == "unused") batch.grads.back() = Numbers(3, 0.0);
    }
    if (step == 2) batch.grads[1][3] = std::nan("");
    if (step == 4) batch.loss = std::numeric_limits<double>::infinity();
    out.push_back(std::move(batch));
  }
  return out;
}

double norm(const Numbers& x) {
  double total = 0;
  for (const double e : x) total += e * e;
  return std::sqrt(total);
}

/// You et al. 2020, algorithm 2; with clipping before it.
class PlainLamb {
 public:
  explicit PlainLamb(const OptimizerConfig& config) : c_(config) {
    for (const Tensor& t : tensors()) {
      p.push_back(t.start);
      m.emplace_back(t.start.size(), 0.0);
      v.emplace_back(t.start.size(), 0.0);
    }
  }

  void step(const LambBatch& batch) {
    double square = 0;
    for (const Numbers& g : batch.grads) square += norm(g) * norm(g);
    if (!std::isfinite(square) || !std::isfinite(batch.loss)) return;
    const double scale = c_.clip > 0 ? std::min(1.0, c_.clip / (std::sqrt(square) + 1e-6)) : 1.0;
    ++t_;
    for (std::size_t n = 0; n < p.size(); ++n) {
      const double decay = tensors()[n].shape.ndim() >= 2 ? c_.weight_decay : 0;
      Numbers u(p[n].size());
      for (std::size_t i = 0; i < u.size(); ++i) {
        const double g = batch.grads[n][i] * scale;
        m[n][i] = c_.beta1 * m[n][i] + (1 - c_.beta1) * g;
        v[n][i] = c_.beta2 * v[n][i] + (1 - c_.beta2) * g * g;
        const double m_hat = m[n][i] / (1 - std::pow(c_.beta1, t_));
        const double v_hat = v[n][i] / (1 - std::pow(c_.beta2, t_));
        u[i] = m_hat / (std::sqrt(v_hat) + c_.eps) + decay * p[n][i];
      }
      double ratio = 1;
      if (norm(p[n]) > 0 && norm(u) > 0) {
        ratio = norm(p[n]) / norm(u);
        if (c_.max_trust_ratio > 0) ratio = std::min(ratio, c_.max_trust_ratio);
        ratio = std::max(ratio, c_.min_trust_ratio);
      }
      ratios.push_back(ratio);
      for (std::size_t i = 0; i < u.size(); ++i) p[n][i] -= c_.schedule.lr * ratio * u[i];
    }
  }

  std::vector<Numbers> p, m, v;
  Numbers ratios;  // of every tensor in every step that was taken

 private:
  OptimizerConfig c_;
  int t_ = 0;
};

/// The graph that `update` builds, stepped by the interpreter.
class GraphLamb {
 public:
  explicit GraphLamb(const OptimizerConfig& config) {
    Builder builder;
    std::vector<Value> parameters, grads;
    for (const Tensor& t : tensors()) {
      const TensorType type{DType::F32, t.shape, {}};
      parameters.push_back(builder.state(t.path, type, Role::Parameter, {}));
      grads.push_back(builder.batch(text("d ", t.path), type));
    }
    const Value loss = builder.batch("loss", {DType::F32, {}, {}});
    const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
    update(parameters, grads, loss, samples, 4, config);
    graph_ = builder.finish();
    for (const State& state : graph_.states()) {
      HostTensor value(graph_.type(state.value));
      if (value.dtype() == DType::F32) value = HostTensor(DType::F64, value.shape());
      in_.states.emplace(state.path, value);
    }
    for (const Tensor& t : tensors()) set(in_.states.at(t.path), t.start);
  }

  void step(const LambBatch& batch) {
    for (std::size_t n = 0; n < batch.grads.size(); ++n) {
      HostTensor g(DType::F64, tensors()[n].shape);
      set(g, batch.grads[n]);
      in_.batch.insert_or_assign(text("d ", tensors()[n].path), g);
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

 private:
  static void set(HostTensor& to, const Numbers& from) {
    for (std::size_t i = 0; i < from.size(); ++i) to.set(static_cast<std::int64_t>(i), from[i]);
  }
  Graph graph_;
  Bindings in_;
};

void expect_equal(const HostTensor& got, const Numbers& want, const std::string& what) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    // A few dozen roundings of 2^-53, and the correction's power by another function.
    EXPECT_NEAR(got.at(static_cast<std::int64_t>(i)), want[i], 1e-13) << what << " [" << i << "]";
  }
}

OptimizerConfig recipe() {
  OptimizerConfig c;
  c.kind = OptimizerKind::Lamb;
  c.beta2 = 0.95;
  c.eps = 1e-6;
  c.weight_decay = 0.1;
  c.schedule = {.kind = ScheduleKind::Constant, .lr = 0.02};
  return c;
}

struct Row {
  const char* name;
  double clip, low, high;
};

TEST(Lamb, EqualsThePapersFormulas) {
  const Row rows[] = {{"clipped in every step", 0.5, 0, 0},
                      {"never clipped", 0, 0, 0},
                      {"a highest ratio, as MindSpore's of 10", 1.0, 0, 0.7},
                      {"both bounds", 1.0, 0.6, 0.9}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    OptimizerConfig config = recipe();
    config.clip = row.clip;
    config.min_trust_ratio = row.low;
    config.max_trust_ratio = row.high;
    PlainLamb plain(config);
    GraphLamb graph(config);
    for (const LambBatch& batch : batches()) {
      plain.step(batch);
      graph.step(batch);
      for (std::size_t n = 0; n < tensors().size(); ++n) {
        const std::string path = tensors()[n].path;
        expect_equal(graph.state(path), plain.p[n], path);
        expect_equal(graph.state(path + ".m"), plain.m[n], path + ".m");
        expect_equal(graph.state(path + ".v"), plain.v[n], path + ".v");
      }
    }
    EXPECT_EQ(graph.state("optimizer.updates").at(0), 4) << "two of six steps are skipped";
    EXPECT_EQ(graph.state("data.samples").at(0), 24);
    // The rows do what they are called.
    for (const double ratio : plain.ratios) {
      if (ratio == 1) continue;  // of a norm that is 0
      EXPECT_GE(ratio, row.low);
      EXPECT_LE(ratio, row.high > 0 ? row.high : 1e9);
    }
    EXPECT_EQ(std::count(plain.ratios.begin(), plain.ratios.end(), row.high) > 0, row.high > 0);
    EXPECT_EQ(std::count(plain.ratios.begin(), plain.ratios.end(), row.low) > 0, row.low > 0);
  }
}

/// p = (3, 4) has norm 5; without a past the direction is the gradient's sign, of norm sqrt(2).
TEST(Lamb, OneStepByHand) {
  Builder builder;
  const TensorType type{DType::F32, {2}, {}};
  const Value p = builder.state("p", type, Role::Parameter, {}), g = builder.batch("g", type);
  const Value loss = builder.batch("loss", {DType::F32, {}, {}});
  const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  OptimizerConfig config = recipe();
  config.eps = 0;
  config.clip = 0;
  update({p}, {g}, loss, samples, 1, config);
  const Graph graph = builder.finish();
  const HostTensor none(DType::F64, {2}), zero = HostTensor::scalar<std::int64_t>(0);
  Bindings in;
  in.states = {{"p", HostTensor::of<double>({2}, {3, 4})},
               {"p.m", none},
               {"p.v", none},
               {"data.samples", zero},
               {"schedule.samples", zero},
               {"optimizer.updates", zero}};
  in.batch = {{"g", HostTensor::of<double>({2}, {7, -0.3})},
              {"loss", HostTensor::scalar<double>(1)}};
  Interpretation how;
  how.f64 = true;
  const std::vector<HostTensor> out = interpret(graph, in, how);
  bool found = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (graph.outputs()[i].name != "p") continue;
    found = true;
    EXPECT_NEAR(out[i].at(0), 3 - 0.02 * 5 / std::sqrt(2.0), 1e-14);
    EXPECT_NEAR(out[i].at(1), 4 + 0.02 * 5 / std::sqrt(2.0), 1e-14);
  }
  EXPECT_TRUE(found);
}

TEST(Lamb, BoundsThatContradictAreRefused) {
  OptimizerConfig config = recipe();
  config.min_trust_ratio = 2;
  EXPECT_TRUE(problems(config).empty()) << "no upper bound";
  config.max_trust_ratio = 1;
  ASSERT_EQ(problems(config).size(), 1u);
  EXPECT_EQ(problems(config)[0],
            "lamb-min-trust-ratio 2 is above lamb-max-trust-ratio 1; lower it");
  config.min_trust_ratio = -1;
  EXPECT_EQ(problems(config).size(), 1u);
}

}  // namespace
}  // namespace tessera
