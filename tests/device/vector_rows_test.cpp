#include "device/vector_test.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/ops/top_k.h"

namespace tessera {

namespace {

using testing::expect_f32_rounded;
using testing::expect_vector;
using testing::in_place;
using testing::KernelSetting;
using testing::random_tensor;
using testing::strided;
using testing::Tolerance;
using Dims = std::vector<std::int64_t>;

constexpr double kRowsUlp = 0x1p-23;

/// Rows of numbers of many sizes, the last one cut.
const Shape kRows[] = {{1}, {1, 7}, {3, 5, 33}, {65, 128}, {37, 1000}, {2, 5003}};

TEST(VectorNorm, Forward) {
  for (const Shape& shape : kRows) {
    SCOPED_TRACE(to_text(shape));
    const HostTensor x = random_tensor(DType::F32, shape, 1, 2, 5),
                     weight = random_tensor(DType::F32, {shape.back()}, 2),
                     bias = random_tensor(DType::F32, {shape.back()}, 3);
    // x - mean loses digits: the mean is 3.5 times what is left.
    const Tolerance tolerance{20 * kRowsUlp, 20 * kRowsUlp};
    const char* const kernel = shape.ndim() > 1 ? "hwy:rows" : "reference";  // no rows
    expect_vector(kernel, kLayerNorm, {1e-5}, {x, weight, bias},
                  shape.back() == 1 ? Tolerance{0, 1e-4} : tolerance);
    if (shape.back() > 1) expect_vector(kernel, kLayerNorm, {1e-5}, {x, weight}, tolerance);
    expect_vector(kernel, kRmsNorm, {1e-5}, {x, weight}, {8 * kRowsUlp, 0});
  }
}

TEST(VectorNorm, Backward) {
  for (const Shape& shape : kRows) {
    if (shape.back() == 1) continue;  // rstd is then 1 / sqrt(eps), and everything is rounding
    SCOPED_TRACE(to_text(shape));
    const HostTensor x = random_tensor(DType::F32, shape, 1, -2, 2),
                     dy = random_tensor(DType::F32, shape, 4),
                     weight = random_tensor(DType::F32, {shape.back()}, 2);
    const std::vector<HostTensor> layer = evaluate(kLayerNorm, {x, weight}, {1e-5}),
                                  rms = evaluate(kRmsNorm, {x, weight}, {1e-5});
    // Sums over 65 rows and along 5003 columns in f32.
    const Tolerance tolerance{1e-5, 1e-5};
    expect_vector("hwy:rows", kLayerNormGrad, {true}, {dy, x, weight, layer[1], layer[2]},
                  tolerance);
    expect_vector("hwy:rows", kLayerNormGrad, {false}, {dy, x, weight, layer[1], layer[2]},
                  tolerance);
    expect_vector("hwy:rows", kRmsNormGrad, {}, {dy, x, weight, rms[1]}, tolerance);
  }
}

TEST(VectorNorm, OverTwoDims) {
  const Shape shape{3, 65, 33}, dims{65, 33};
  const HostTensor x = random_tensor(DType::F32, shape, 1, -2, 2),
                   dy = random_tensor(DType::F32, shape, 4),
                   weight = random_tensor(DType::F32, dims, 2),
                   bias = random_tensor(DType::F32, dims, 3);
  const Tolerance tolerance{1e-5, 1e-5};  // sums over 2145 elements in f32
  expect_vector("hwy:rows", kLayerNorm, {1e-5}, {x, weight, bias}, tolerance);
  expect_vector("hwy:rows", kRmsNorm, {1e-5}, {x, weight}, tolerance);
  const std::vector<HostTensor> layer = evaluate(kLayerNorm, {x, weight}, {1e-5}),
                                rms = evaluate(kRmsNorm, {x, weight}, {1e-5});
  expect_vector("hwy:rows", kLayerNormGrad, {true}, {dy, x, weight, layer[1], layer[2]}, tolerance);
  expect_vector("hwy:rows", kRmsNormGrad, {}, {dy, x, weight, rms[1]}, tolerance);
}

TEST(VectorTopK, EqualsReference) {
  for (const Shape& shape : kRows) {
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{7}, shape.back()}) {
      if (k > shape.back()) continue;
      SCOPED_TRACE(text(shape, ", ", k));
      HostTensor x = random_tensor(DType::F32, shape, 1);
      expect_vector("hwy:top_k", kTopK, {k}, {x}, {});
      for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, std::round(x.at(i)));  // ties
      for (const std::int64_t i : {2, 3, 5, 7})  // often more than k
        x.set(x.numel() * i / 10, std::nan(""));
      expect_vector("hwy:top_k", kTopK, {k}, {x}, {});
    }
  }
}

TEST(VectorSoftmax, EqualsReference) {
  for (const Shape& shape : kRows) {
    SCOPED_TRACE(to_text(shape));
    const HostTensor x = random_tensor(DType::F32, shape, 1, -9, 9);
    const std::int64_t last = shape.ndim() - 1;
    // x - max is rounded once, up to 18: 2 ulp of the exponent are 2e-6 of the result.
    expect_vector("hwy:softmax", kSoftmax, {last}, {x}, {4e-6, 1e-12});
    expect_vector("hwy:softmax", kSoftmax, {last}, {x}, {4e-6, 1e-12}, in_place(0));
  }
  expect_vector("reference", kSoftmax, {std::int64_t{0}}, {random_tensor(DType::F32, {4, 6}, 1)},
                {4e-6, 1e-12});
}

TEST(VectorCrossEntropy, ForwardAndBackward) {
  for (const Shape& shape : {Shape{1, 2}, Shape{3, 5, 33}, Shape{37, 1000}, Shape{3, 50257}}) {
    SCOPED_TRACE(to_text(shape));
    Shape rows = shape;
    rows.erase(rows.ndim() - 1);
    const HostTensor logits = random_tensor(DType::F32, shape, 1, -9, 9),
                     dloss = random_tensor(DType::F32, rows, 2);
    HostTensor labels = random_tensor(DType::I32, rows, 3, 0, static_cast<double>(shape.back()));
    if (rows.numel() > 1) labels.set(1, -100);
    const Attrs attrs = {std::int64_t{-100}};
    expect_vector("hwy:cross_entropy", kCrossEntropy, attrs, {logits, labels},
                  {4 * kRowsUlp, 4e-6});
    const HostTensor logsumexp = evaluate(kCrossEntropy, {logits, labels}, attrs)[1];
    for (const int operand : {-1, 0}) {
      expect_vector("hwy:cross_entropy_grad", kCrossEntropyGrad, attrs,
                    {logits, labels, logsumexp, dloss}, {4e-6, 2 * kRowsUlp}, in_place(operand));
    }
  }
}

/// Rows of 16 bits are computed in f32 and rounded once, those of a vocabulary's part as well.
TEST(VectorCrossEntropy, SixteenBitsAreThoseOfF32Rounded) {
  for (const Shape& shape : {Shape{1, 2}, Shape{3, 5, 33}, Shape{37, 1000}, Shape{3, 50257}}) {
    for (const DType dtype : {DType::BF16, DType::F16}) {
      Shape rows = shape;
      rows.erase(rows.ndim() - 1);
      const HostTensor x = random_tensor(dtype, shape, 1, -9, 9),
                       dloss = random_tensor(DType::F32, rows, 2);
      const double classes = static_cast<double>(shape.back());
      HostTensor labels = random_tensor(DType::I32, rows, 3, 0, classes);
      if (rows.numel() > 1) labels.set(1, -100);
      KernelSetting part;  // the first column is number 1 of 2 more
      const Shape offset = [&] {
        Shape out = Shape::of(shape.ndim(), 0);
        out[shape.ndim() - 1] = 1;
        return out;
      }();
      for (int i = 0; i < 4; ++i)
        part.ins.push_back({shape, offset, Shape::of(shape.ndim(), 0), {}});
      for (const testing::Instructions& c : testing::kInstructions) {
        SCOPED_TRACE(text(to_text(shape), ", ", dtype, " with ", c.name, " instructions"));
        const testing::Without without(c.without);
        testing::VectorDevice device(c.threads);
        const Attrs attrs = {std::int64_t{-100}};
        const HostTensor logsumexp =
            expect_f32_rounded(device, kCrossEntropy, attrs, {x, labels})[1];
        for (const KernelSetting& setting : {KernelSetting(), in_place(0), part}) {
          expect_f32_rounded(device, kCrossEntropyGrad, attrs, {x, labels, logsumexp, dloss},
                             setting);
        }
        const Attrs last = {std::int64_t{shape.ndim() - 1}};
        expect_f32_rounded(device, kSoftmax, last, {x});
        expect_f32_rounded(device, kSoftmax, last, {x}, in_place(0));
      }
    }
  }
}

TEST(VectorCrossEntropy, ColumnsThatAreRuledOut) {
  HostTensor logits = random_tensor(DType::F32, {2, 9000}, 1, -9, 9);
  for (std::int64_t i = 0; i < 5000; ++i)
    logits.set(i, -std::numeric_limits<double>::infinity());  // a whole span
  logits.set(9000 + 77, std::nan(""));
  const HostTensor labels = HostTensor::of<std::int32_t>({2}, {7000, 3});
  expect_vector("hwy:cross_entropy", kCrossEntropy, {std::int64_t{-100}}, {logits, labels},
                {4 * kRowsUlp, 4e-6});
}

struct ReduceCase {
  Shape shape;
  Dims dims;
};
const ReduceCase kReduce[] = {
    {{1}, {0}},
    {{5}, {0}},
    {{100'003}, {0}},
    {{33, 1, 70}, {0, 1, 2}},
    {{33, 70}, {1}},
    {{2, 20'011}, {1}},
    {{4, 33, 70}, {0, 1}},    // a bias
    {{4, 257, 768}, {0, 1}},  // a bias, columns shared by threads
    {{5000, 12}, {0}},        // few columns: rows are shared
    {{4, 33, 70}, {1}},
    {{7, 300, 31}, {1}},
    {{40, 5, 60}, {0, 2}},
    {{3, 1, 5}, {1}},  // nothing
    {{0, 5}, {0}},
};

/// Sums of rows are what fused nodes may hold.
const char* kernel_of_sum(const ReduceCase& c, bool keep) {
  const auto count = static_cast<std::int64_t>(c.dims.size());
  const bool leading = c.dims.back() + 1 == count && count < c.shape.ndim();
  return leading && !keep ? "hwy:rows" : "hwy:reduce";
}

TEST(VectorReduce, EqualsReference) {
  for (const ReduceCase& c : kReduce) {
    SCOPED_TRACE(text(c.shape, " over ", AttrValue(c.dims)));
    const HostTensor x = random_tensor(DType::F32, c.shape, 1, 0.5, 1);
    for (const bool keep : {false, true}) {
      // Positive terms: short sums in f32, joined as trees or in f64.
      expect_vector(kernel_of_sum(c, keep), kSum, {c.dims, keep}, {x}, {3e-6, 0});
      expect_vector("hwy:reduce", kMax, {c.dims, keep}, {x}, {});
      expect_vector("hwy:reduce", kMin, {c.dims, keep}, {x}, {});
    }
    expect_vector("hwy:reduce", kSumSquares, {}, {x}, {2e-6, 0});
  }
  const HostTensor x = random_tensor(DType::F32, {2, 3, 4, 5}, 1);
  expect_vector("reference", kSum, {Dims{0, 2}, false}, {x}, {1e-6, 1e-6});
}

/// 16 bits are widened where they are read, and what is left of them is rounded once.
TEST(VectorReduce, SixteenBitsAreThoseOfF32Rounded) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const testing::Instructions& c : testing::kInstructions) {
      const testing::Without without(c.without);
      testing::VectorDevice device(c.threads);
      for (const ReduceCase& reduce : kReduce) {
        SCOPED_TRACE(text(reduce.shape, " over ", AttrValue(reduce.dims), ", ", dtype, " with ",
                          c.name, " instructions"));
        HostTensor x = random_tensor(dtype, reduce.shape, 1);
        for (const bool nan : {false, true}) {
          if (nan && x.numel() > 0) x.set(x.numel() / 2, std::nan(""));
          for (const bool keep : {false, true}) {
            expect_f32_rounded(device, kSum, {reduce.dims, keep}, {x});
            expect_f32_rounded(device, kSum, {reduce.dims, keep, DType::F32}, {x});
            expect_f32_rounded(device, kMax, {reduce.dims, keep}, {x});
            expect_f32_rounded(device, kMin, {reduce.dims, keep}, {x});
          }
          expect_f32_rounded(device, kSumSquares, {}, {x});
        }
      }
    }
  }
}

TEST(VectorReduce, NotANumberWins) {
  for (const std::int64_t at : {0, 40, 69}) {
    HostTensor x = random_tensor(DType::F32, {3, 70}, 1);
    x.set(70 + at, std::nan(""));
    for (const Dims& dims : {Dims{0}, Dims{1}, Dims{0, 1}}) {
      expect_vector("hwy:reduce", kMax, {dims, false}, {x}, {});
      expect_vector("hwy:reduce", kMin, {dims, false}, {x}, {});
      expect_vector(kernel_of_sum({{3, 70}, dims}, false), kSum, {dims, false}, {x}, {1e-6, 1e-6});
    }
  }
}

TEST(VectorReduce, TheSameBitsOnAnyThreads) {
  const HostTensor x = random_tensor(DType::F32, {300'001}, 1);
  float bits[3];
  for (const int threads : {1, 2, 3}) {
    testing::VectorDevice device(threads);
    bits[threads - 1] = testing::run_kernel(device, kSumSquares, {}, {x}, {{DType::F32, {}, {}}})
                            .outs[0]
                            .data<float>()[0];
  }
  EXPECT_EQ(bits[0], bits[1]);
  EXPECT_EQ(bits[0], bits[2]);
}

TEST(VectorOptimizer, EqualsReference) {
  for (const Shape& shape : {Shape{1}, Shape{7, 5}, Shape{33'333}}) {
    SCOPED_TRACE(to_text(shape));
    const HostTensor p = random_tensor(DType::F32, shape, 1),
                     m = random_tensor(DType::F32, shape, 2, -0.1, 0.1),
                     v = random_tensor(DType::F32, shape, 3, 0, 0.1),
                     g = random_tensor(DType::F32, shape, 4);
    const auto scalar = [](float x) { return HostTensor::scalar<float>(x); };
    for (const bool ok : {true, false}) {
      const HostTensor flag = HostTensor::scalar<bool>(ok);
      for (const bool flavour : {true, false}) {  // decoupled, nesterov
        for (const int operand : {-1, 0}) {
          expect_vector(
              "hwy:adam", kAdam, {0.9, 0.95, 1e-8, 0.1, flavour},
              {p, m, v, g, scalar(1e-3f), scalar(0.5f), scalar(0.19f), scalar(0.0975f), flag},
              {4 * kRowsUlp, 2 * kRowsUlp}, in_place(operand));
          expect_vector("hwy:lamb", kLambDirection, {0.9, 0.95, 1e-6, flavour ? 0.1 : 0.0},
                        {p, m, v, g, scalar(0.5f), scalar(0.19f), scalar(0.0975f), flag},
                        // The mean of gradients cancels, and is divided by roots down to 0.01.
                        {8 * kRowsUlp, 1e-5}, in_place(operand < 0 ? -1 : 3));
          expect_vector("hwy:sgd", kSgd, {0.9, 0.1, flavour},
                        {p, m, g, scalar(1e-3f), scalar(0.5f), flag}, {4 * kRowsUlp, 2 * kRowsUlp},
                        in_place(operand));
        }
      }
    }
  }
}

/// With a copy, the other results have the bits that they have without, and the copy is result 0
/// rounded; also where the step is skipped and nothing but the copy is to be written.
TEST(VectorOptimizer, CopiesAreTheParameterRounded) {
  const auto scalar = [](float x) { return HostTensor::scalar<float>(x); };
  for (const Shape& shape : {Shape{1}, Shape{7, 5}, Shape{33'333}}) {
    const HostTensor p = random_tensor(DType::F32, shape, 1),
                     m = random_tensor(DType::F32, shape, 2, -0.1, 0.1),
                     v = random_tensor(DType::F32, shape, 3, 0, 0.1),
                     g = random_tensor(DType::F32, shape, 4);
    const auto check = [&](const OpDef& op, const Attrs& attrs,
                           const std::vector<HostTensor>& ins) {
      testing::VectorDevice device(2);
      const auto run = [&](const Attrs& how, const testing::KernelSetting& setting) {
        return testing::run_kernel(device, op, how, ins, testing::result_types(op, how, ins),
                                   setting)
            .outs;
      };
      const std::vector<HostTensor> want = run(attrs, {});
      for (const DType copy : {DType::BF16, DType::F16}) {
        for (const int operand : {-1, 0}) {
          SCOPED_TRACE(text(op.name, " ", shape, ", ", copy, ", in place of ", operand));
          const std::vector<HostTensor> got =
              run(attrs.with(attrs.size(), copy), in_place(operand));
          ASSERT_EQ(got.size(), want.size() + 1);
          for (std::size_t i = 0; i < want.size(); ++i) testing::expect_close(got[i], want[i], {});
          testing::expect_close(got.back(), want[0].cast(copy), {});
        }
      }
    };
    for (const bool ok : {true, false}) {
      const HostTensor flag = HostTensor::scalar<bool>(ok);
      check(kAdam, {0.9, 0.95, 1e-8, 0.1, true},
            {p, m, v, g, scalar(1e-3f), scalar(0.5f), scalar(0.19f), scalar(0.0975f), flag});
      check(kSgd, {0.9, 0.1, true}, {p, m, g, scalar(1e-3f), scalar(0.5f), flag});
    }
  }
}

TEST(VectorRope, EqualsReference) {
  const HostTensor positions = random_tensor(DType::I32, {2, 9}, 1, 0, 500);
  // {channels, those that turn}
  for (const auto& [e, turned] : {std::pair{2, 2}, {6, 6}, {16, 16}, {64, 64}, {64, 22}, {5, 2}}) {
    const HostTensor x = random_tensor(DType::F32, {2, 9, 3, 2, e}, 2);
    for (const bool inverse : {false, true}) {
      const double factor = e == turned ? 1 : 1.3;
      const Attrs attrs = {rotary_rates({}, turned, 0).rates, factor, inverse};
      // Angles of up to 500 are rounded to 3e-5.
      expect_vector("hwy:rope", kRope, attrs, {x, positions}, {0, 1e-4});
      expect_vector("hwy:rope", kRope, attrs, {x, positions}, {0, 1e-4}, in_place(0));
      expect_vector("hwy:rope", kRope, attrs, {x, positions}, {0, 1e-4},
                    strided({{9 * 20 * e, 20 * e, 2 * e, e, 1}, {}}));  // a slice of a wider row
    }
  }
}

}  // namespace

}  // namespace tessera
