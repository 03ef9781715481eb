/// MindSpore's AdamWeightDecay against its formula, written out in plain loops here.

#include "nn/update_run.h"

namespace tessera {
namespace {

using test::UpdateBatch;
using test::UpdateRun;

/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr (m / (sqrt(v) + eps) + decay p).
class PlainAdamWeightDecay {
 public:
  explicit PlainAdamWeightDecay(const OptimizerConfig& config) : c_(config) {
    for (const test::UpdatedTensor& t : test::updated_tensors()) {
      p.push_back(t.start);
      m.emplace_back(t.start.size(), 0.0);
      v.emplace_back(t.start.size(), 0.0);
    }
  }

  void step(const UpdateBatch& batch) {
    const std::optional<double> scale = test::clipping(batch, c_.clip);
    if (!scale) return;
    for (std::size_t n = 0; n < p.size(); ++n) {
      const double decay = test::updated_tensors()[n].shape.ndim() >= 2 ? c_.weight_decay : 0;
      for (std::size_t i = 0; i < p[n].size(); ++i) {
        const double g = batch.grads[n][i] * *scale;
        m[n][i] = c_.beta1 * m[n][i] + (1 - c_.beta1) * g;
        v[n][i] = c_.beta2 * v[n][i] + (1 - c_.beta2) * g * g;
        p[n][i] -= c_.schedule.lr * (m[n][i] / (std::sqrt(v[n][i]) + c_.eps) + decay * p[n][i]);
      }
    }
  }

  std::vector<std::vector<double>> p, m, v;

 private:
  OptimizerConfig c_;
};

TEST(AdamWeightDecay, EqualsMindSporesFormula) {
  for (const double clip : {0.0, 0.5}) {
    SCOPED_TRACE(clip);
    OptimizerConfig config;
    config.kind = OptimizerKind::AdamWeightDecay;
    config.eps = 1e-6;
    config.weight_decay = 0.1;
    config.clip = clip;
    config.schedule = {.kind = ScheduleKind::Constant, .lr = 0.02};
    PlainAdamWeightDecay plain(config);
    UpdateRun run(config);
    for (const UpdateBatch& batch : test::update_batches()) {
      plain.step(batch);
      run.step(batch);
      for (std::size_t n = 0; n < plain.p.size(); ++n) {
        const std::string path = test::updated_tensors()[n].path;
        test::expect_state(run, path, plain.p[n]);
        test::expect_state(run, path + ".m", plain.m[n]);
        test::expect_state(run, path + ".v", plain.v[n]);
      }
    }
    EXPECT_EQ(run.state("optimizer.updates").at(0), 4) << "two of six steps are skipped";
  }
}

/// Without a past, AdamW's first step has the size lr, whatever the gradient's size is; without the
/// correction it has lr (1 - beta1) / sqrt(1 - beta2), 3.16 times as much with the defaults.
TEST(AdamWeightDecay, TheFirstStepIsLongerThanAdamWs) {
  double moved[2];
  for (const bool corrected : {false, true}) {
    OptimizerConfig config;
    config.kind = corrected ? OptimizerKind::AdamW : OptimizerKind::AdamWeightDecay;
    config.eps = 0;
    config.weight_decay = 0;
    config.schedule = {.kind = ScheduleKind::Constant, .lr = 0.01};
    UpdateRun run(config);
    UpdateBatch batch = test::update_batches()[0];
    // No gradient is 0 here: 0 / 0 is no step.
    batch.grads[3] = {1, 1, 1};
    run.step(batch);
    moved[corrected] = std::abs(run.state("zero").at(0));
  }
  EXPECT_NEAR(moved[1], 0.01, 1e-14);
  EXPECT_NEAR(moved[0], 0.01 * 0.1 / std::sqrt(0.001), 1e-14);
}

}  // namespace
}  // namespace tessera
