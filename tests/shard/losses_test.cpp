/// Losses and their gradients beside PyTorch's; and how their operands are cut does not matter.

#include "shard/one_device.h"
#include "tessera/ops/matmul.h"
#include "tessera/passes/compute_in.h"

namespace tessera {
namespace {

using LossReals = std::vector<double>;

const LossReals kLogits = {0.5, -1.25, 2, 0, 3.5, -0.75, 1.5, 0.25, -2, -0.5, 0.75, 40},
                kTargets = {0.25, -3, 2, 0.5, 1.5, 0, -1, 0.75, -2.5, 0, 1, 41.5},
                kShares = {1, 0, 1, 0, 1, 0.5, 1, 0, 0, 0, 1, 1},
                kClassesOfRows = {2, 1, kIgnoredLabel, 0};

struct LossCase {
  const char* name;
  Mean (*mean)(Value x, Value labels);
  const LossReals& labels;
  double loss;
  LossReals gradient;
};

/// Made by torch.nn.functional 2.15 in float64: mse_loss, binary_cross_entropy_with_logits,
/// huber_loss(delta=0.5), smooth_l1_loss(beta=2), smooth_l1_loss(beta=0),
/// cross_entropy(label_smoothing=0.1), and ((1 - exp(-c)) ** gamma * c)[labels >= 0].mean() of
/// c = cross_entropy(reduction="none").
const LossCase kLossCases[] = {
    {"squared_error",
     [](Value x, Value y) { return mean_of(squared_error(x, y)); },
     kTargets,
     1.4375,
     {0.0416666666667, 0.291666666667, 0, -0.0833333333333, 0.333333333333, -0.125, 0.416666666667,
      -0.0833333333333, 0.0833333333333, -0.0833333333333, -0.0416666666667, -0.25}},
    {"binary_cross_entropy",
     [](Value x, Value y) { return mean_of(binary_cross_entropy(x, y)); },
     kShares,
     0.36274428172629114,
     {-0.0314617223998, 0.0185583449021, -0.00993357683518, 0.0416666666667, -0.00244268589595,
      -0.0149315582646, -0.0152021269839, 0.0468480417405, 0.00993357683518, 0.0314617223998,
      -0.0267351084021, 0}},
    {"huber",
     [](Value x, Value y) { return mean_of(huber(x, y, 0.5)); },
     kTargets,
     0.3489583333333333,
     {0.0208333333333, 0.0416666666667, 0, -0.0416666666667, 0.0416666666667, -0.0416666666667,
      0.0416666666667, -0.0416666666667, 0.0416666666667, -0.0416666666667, -0.0208333333333,
      -0.0416666666667}},
    {"smooth_l1",
     [](Value x, Value y) { return mean_of(smooth_l1(x, y, 2)); },
     kTargets,
     0.3541666666666667,
     {0.0104166666667, 0.0729166666667, 0, -0.0208333333333, 0.0833333333333, -0.03125,
      0.0833333333333, -0.0208333333333, 0.0208333333333, -0.0208333333333, -0.0104166666667,
      -0.0625}},
    {"smooth_l1 of beta 0",
     [](Value x, Value y) { return mean_of(smooth_l1(x, y, 0)); },
     kTargets,
     0.9166666666666666,
     {0.0833333333333, 0.0833333333333, 0, -0.0833333333333, 0.0833333333333, -0.0833333333333,
      0.0833333333333, -0.0833333333333, 0.0833333333333, -0.0833333333333, -0.0833333333333,
      -0.0833333333333}},
    {"smoothed_cross_entropy",
     [](Value x, Value y) {
       return masked_mean(smoothed_cross_entropy(x, y, 0.1), counted_labels(y));
     },
     kClassesOfRows,
     13.267041179010779,
     {0.0478289495914, -0.000868864335632, -0.0469600852557, -0.00147380677452, 0.00803257765845,
      -0.00655877088392, 0, 0, 0, -0.311111111111, -0.0111111111111, 0.322222222222}},
    {"focal",
     [](Value x, Value y) { return masked_mean(focal(x, y), counted_labels(y)); },
     kClassesOfRows,
     13.50336639678524,
     {0.00704893403866, 0.00122492106502, -0.00827385510368, 5.16374869903e-05, -7.60293087121e-05,
      2.43918217218e-05, 0, 0, 0, -0.333333333333, 0, 0.333333333333}},
    {"focal of gamma 0.5",
     [](Value x, Value y) { return masked_mean(focal(x, y, 0.5), counted_labels(y)); },
     kClassesOfRows,
     13.538317227238531,
     {0.0387761911859, 0.00673829165436, -0.0455144828402, 0.00296111991908, -0.00435985392751,
      0.00139873400843, 0, 0, 0, -0.333333333333, 0, 0.333333333333}},
};

TEST(Losses, AndGradientsAreThoseOfPyTorch) {
  for (const LossCase& c : kLossCases) {
    for (const bool f64 : {true, false}) {
      SCOPED_TRACE(text(c.name, f64 ? " in f64" : " in f32"));
      Builder builder;
      const bool classes = c.labels.size() == 4;
      const TensorType of_labels{
          classes ? DType::I32 : DType::F32, classes ? Shape{4} : Shape{4, 3}, {}};
      const Value x = builder.state("x", {DType::F32, {4, 3}, {}}, Role::Parameter, {}),
                  labels = builder.batch("labels", of_labels);
      const Value loss = c.mean(x, labels).value();
      builder.output(Output::Kind::Metric, "loss", loss);
      builder.output(Output::Kind::Metric, "gradient", gradients(loss, {x})[0]);
      Bindings in;
      HostTensor logits(DType::F32, {4, 3}), numbers(of_labels.dtype, of_labels.shape);
      for (std::size_t i = 0; i < 12; ++i) logits.set(static_cast<std::int64_t>(i), kLogits[i]);
      for (std::size_t i = 0; i < c.labels.size(); ++i)
        numbers.set(static_cast<std::int64_t>(i), c.labels[i]);
      in.states.emplace("x", logits);
      in.batch.emplace("labels", numbers);
      Interpretation how;
      how.f64 = f64;
      const std::vector<HostTensor> out = interpret(builder.finish(), in, how);
      EXPECT_NEAR(out[0].at(0), c.loss, (f64 ? 1e-12 : 2e-7) * c.loss);
      for (std::size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(out[1].at(static_cast<std::int64_t>(i)), c.gradient[i], f64 ? 1e-12 : 1e-7)
            << "element " << i;
    }
  }
}

/// Also of a program in bf16: labels keep their digits, as bf16 has eight bits of them.
TEST(Losses, OfNumbersAreOfF32InMixedPrecision) {
  for (const LossCase& c : kLossCases) {
    if (c.labels.size() == 4) continue;
    SCOPED_TRACE(c.name);
    Builder builder;
    const Value x = builder.state("x", {DType::F32, {1, 3}, {}}, Role::Parameter, {}),
                labels = builder.batch("labels", {DType::F32, {1, 3}, {}});
    const Value loss = c.mean(x, labels).value();
    builder.output(Output::Kind::Metric, "loss", loss);
    builder.output(Output::Kind::Metric, "gradient", gradients(loss, {x})[0]);
    const Graph f32 = builder.finish(), bf16 = compute_in(f32, {});
    Bindings in;
    HostTensor logits(DType::F32, {1, 3}), numbers(DType::F32, {1, 3}), copy(DType::BF16, {1, 3});
    for (std::int64_t i = 0; i < 3; ++i) {
      logits.set(i, 0.5 * static_cast<double>(i));  // as bf16 has them
      copy.set(i, 0.5 * static_cast<double>(i));
      numbers.set(i, 0.7012345 - 0.3 * static_cast<double>(i));
    }
    in.states.emplace("x", logits);
    in.states.emplace("x.bf16", copy);
    in.batch.emplace("labels", numbers);
    const auto want = interpret(f32, in, {}), got = interpret(bf16, in, {});
    EXPECT_NEAR(got[0].at(0), want[0].at(0), 1e-6 * std::abs(want[0].at(0)));
    for (std::int64_t i = 0; i < 3; ++i)  // the gradient of x itself is one of bf16: 2^-8
      EXPECT_NEAR(got[1].at(i), want[1].at(i), 4e-3 * std::abs(want[1].at(i)));
  }
}

/// Of vectors in f16 too: one of a row without a sample is zero, and stays finite; and cosines keep
/// the digits that tell neighbours apart.
TEST(Losses, SimilaritiesAreOfF32InMixedPrecision) {
  Builder builder;
  const TensorType type{DType::F32, {2, 4}, {}};
  const Value a = builder.state("a", type, Role::Parameter, {}),
              b = builder.state("b", type, Role::Parameter, {});
  builder.output(Output::Kind::Metric, "logits", similarity_logits(a, {b}, 20));
  const Graph f32 = builder.finish();
  HostTensor x(DType::F32, {2, 4}), y(DType::F32, {2, 4});
  for (std::int64_t i = 0; i < 4; ++i) {  // the second rows are zero
    x.set(i, 1);
    y.set(i, i == 0 ? 1.25 : 1);
  }
  for (const DType dtype : {DType::F16, DType::BF16}) {
    SCOPED_TRACE(text(dtype));
    Bindings in;
    for (const auto& [name, value] : {std::pair("a", x), std::pair("b", y)}) {
      HostTensor copy(dtype, {2, 4});
      for (std::int64_t i = 0; i < 8; ++i) copy.set(i, value.at(i));
      in.states.emplace(name, value);
      in.states.emplace(text(name, ".", dtype), std::move(copy));
    }
    const HostTensor got = interpret(compute_in(f32, {.compute = dtype}), in, {})[0];
    EXPECT_NEAR(got.at(0), 20 * 4.25 / (2 * std::sqrt(4.5625)), 0.05);
    for (std::int64_t i = 1; i < 4; ++i) EXPECT_EQ(got.at(i), 0);
  }
}

TEST(Losses, RefuseChoicesThatMeanNothing) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {4, 3}, {}});
  const Value labels = builder.batch("labels", {DType::I32, {4}, {}});
  EXPECT_THROW(huber(x, x, 0), Error);
  EXPECT_THROW(smooth_l1(x, x, -1), Error);
  EXPECT_THROW(smoothed_cross_entropy(x, labels, 1.5), Error);
  EXPECT_THROW(focal(x, labels, -1), Error);
}

struct CutLoss {
  const char* name;
  bool classes;  // labels are numbers of classes
  Mean (*mean)(Value logits, Value labels);
};

const CutLoss kCutLosses[] = {
    {"squared_error", false, [](Value x, Value y) { return mean_of(squared_error(x, y)); }},
    {"squared_error of some", false,
     [](Value x, Value y) { return masked_mean(squared_error(x, y), counted_labels(y)); }},
    {"binary_cross_entropy", false,
     [](Value x, Value y) { return mean_of(binary_cross_entropy(x, y)); }},
    {"huber", false, [](Value x, Value y) { return mean_of(huber(x, y, 0.3)); }},
    {"smooth_l1", false, [](Value x, Value y) { return mean_of(smooth_l1(x, y, 0.3)); }},
    {"smoothed_cross_entropy", true,
     [](Value x, Value y) {
       return masked_mean(smoothed_cross_entropy(x, y, 0.1), counted_labels(y));
     }},
    {"focal", true, [](Value x, Value y) { return masked_mean(focal(x, y), counted_labels(y)); }},
};

Graph step_of(const CutLoss& c) {
  constexpr std::int64_t kRows = 16, kWidth = 8;
  Builder builder;
  const TensorType of_labels{
      c.classes ? DType::I32 : DType::F32, c.classes ? Shape{kRows} : Shape{kRows, kWidth}, {}};
  const Value x = builder.batch("x", {DType::F32, {kRows, kWidth}, {}}),
              labels = builder.batch("labels", of_labels),
              w = builder.state("w", {DType::F32, {kWidth, kWidth}, {}}, Role::Parameter, {}),
              samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  const Value loss = c.mean(matmul(x, w), labels).value();
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  update({w}, gradients(loss, {w}), loss, samples, kRows, optimizer);
  builder.output(Output::Kind::Metric, "loss", loss);
  return builder.finish();
}

TEST(CutLosses, AreThoseOfOneDevice) {
  for (const CutLoss& c : kCutLosses) {
    for (const auto& [rows, columns] :
         {std::pair<std::int64_t, std::int64_t>{2, 4}, {4, 2}, {1, 8}, {8, 1}}) {
      SCOPED_TRACE(text(c.name, " cut ", rows, " x ", columns));
      AutoParallel options;
      options.mode = ParallelMode::AutoParallel;
      options.device_num = 8;
      options.shards = {{"matmul", {{rows, 1}, {1, columns}}}};
      options.dataset_strategy.kind = DatasetStrategy::Kind::FullBatch;
      test::expect_equals_one_device(step_of(c), options, 8);
    }
  }
}

}  // namespace
}  // namespace tessera
