/// LAMB against the paper's formulas, written out in plain loops here.

#include <algorithm>

#include "nn/update_run.h"

namespace tessera {
namespace {

using Numbers = std::vector<double>;

using test::UpdateBatch;
using test::UpdateRun;

double norm(const Numbers& x) {
  double total = 0;
  for (const double e : x) total += e * e;
  return std::sqrt(total);
}

/// You et al. 2020, algorithm 2; with clipping before it.
class PlainLamb {
 public:
  explicit PlainLamb(const OptimizerConfig& config) : c_(config) {
    for (const test::UpdatedTensor& t : test::updated_tensors()) {
      p.push_back(t.start);
      m.emplace_back(t.start.size(), 0.0);
      v.emplace_back(t.start.size(), 0.0);
    }
  }

  void step(const UpdateBatch& batch) {
    const std::optional<double> scale = test::clipping(batch, c_.clip);
    if (!scale) return;
    ++t_;
    for (std::size_t n = 0; n < p.size(); ++n) {
      const double decay = test::updated_tensors()[n].shape.ndim() >= 2 ? c_.weight_decay : 0;
      Numbers u(p[n].size());
      for (std::size_t i = 0; i < u.size(); ++i) {
        const double g = batch.grads[n][i] * *scale;
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
    UpdateRun graph(config);
    for (const UpdateBatch& batch : test::update_batches()) {
      plain.step(batch);
      graph.step(batch);
      for (std::size_t n = 0; n < test::updated_tensors().size(); ++n) {
        const std::string path = test::updated_tensors()[n].path;
        test::expect_state(graph, path, plain.p[n]);
        test::expect_state(graph, path + ".m", plain.m[n]);
        test::expect_state(graph, path + ".v", plain.v[n]);
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
               {kGivenRateState, HostTensor::scalar<double>(0)},
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

/// A weight without a gradient has moments of 0: only eps keeps 0 / 0 from it, if f32 has it.
TEST(Lamb, AnEpsOfZeroIsRefused) {
  for (const double eps : {0.0, 1e-50, 1e-40}) {
    OptimizerConfig config = recipe();
    config.eps = eps;
    for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Adam, OptimizerKind::Lamb,
                                     OptimizerKind::AdamWeightDecay}) {
      config.kind = kind;
      ASSERT_EQ(problems(config).size(), 1u) << eps;
      EXPECT_TRUE(problems(config).texts()[0].starts_with("adam-eps is "))
          << problems(config).texts()[0];
    }
    config.kind = OptimizerKind::Sgd;
    EXPECT_TRUE(problems(config).empty()) << "it has no eps";
  }
}

TEST(Lamb, BoundsThatContradictAreRefused) {
  OptimizerConfig config = recipe();
  config.min_trust_ratio = 2;
  EXPECT_TRUE(problems(config).empty()) << "no upper bound";
  config.max_trust_ratio = 1;
  ASSERT_EQ(problems(config).size(), 1u);
  EXPECT_EQ(problems(config).texts()[0],
            "lamb-min-trust-ratio 2 is above lamb-max-trust-ratio 1; lower it");
  config.min_trust_ratio = -1;
  EXPECT_EQ(problems(config).size(), 1u);
}

}  // namespace
}  // namespace tessera
