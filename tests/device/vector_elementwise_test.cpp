#include <bit>
#include <cmath>
#include <limits>

#include "device/vector_test.h"
#include "tessera/device/cpu/vector_convert.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera {

namespace {

using testing::expect_vector;
using testing::in_place;
using testing::KernelSetting;
using testing::random_tensor;
using testing::strided;
using testing::Tolerance;

constexpr double kUlp = 0x1p-23;
constexpr std::string_view kKernel = "hwy:elementwise";

struct UnaryCase {
  const OpDef* op;
  double low, high;
  Tolerance tolerance;
  Attrs attrs;
};
const UnaryCase kUnary[] = {
    {&kNegate, -2, 2, {}, {}},
    {&kExp, -20, 20, {2 * kUlp, 0}, {}},
    {&kExp, -86, 88.7, {2 * kUlp, 0}, {}},
    {&kExp, -200, -100, {0, 1e-37}, {}},  // results that are denormal may become 0
    {&kLog, 1e-30, 10, {2 * kUlp, 0}, {}},
    {&kLog, 0.9, 1.1, {2 * kUlp, 0}, {}},
    {&kLog, 0, 1e-39, {2 * kUlp, 0}, {}},  // denormal operands
    {&kSqrt, 0, 100, {kUlp, 0}, {}},
    {&kRsqrt, 0.01, 100, {2 * kUlp, 0}, {}},
    {&kTanh, -1, 1, {2 * kUlp, 0}, {}},
    {&kTanh, -12, 12, {2 * kUlp, 0}, {}},
    {&kErf, -1.5, 1.5, {2 * kUlp, 0}, {}},
    {&kErf, -6, 6, {2 * kUlp, 0}, {}},
    {&kCos, -4, 4, {0, 2 * kUlp}, {}},
    {&kAbs, -1, 1, {}, {}},
    {&kSigmoid, -30, 30, {3 * kUlp, 0}, {}},
    {&kRelu, -1, 1, {}, {}},
    {&kSilu, -20, 20, {4 * kUlp, 0}, {}},
    // The left tail is a small difference of large numbers: what counts is the error beside x = 1.
    {&kGelu, -8, 8, {4 * kUlp, 2 * kUlp}, {false}},
    {&kGelu, -8, 8, {8 * kUlp, 2 * kUlp}, {true}},
    // The formulas round what they take the exponential of.
    {&kGelu, -3, -0.1, {48 * kUlp, 0}, {false}},
    {&kGelu, -3, -0.1, {48 * kUlp, 0}, {true}},
    {&kGelu, -100, -4, {0, 2e-7}, {false}},
    {&kGelu, -100, -4, {0, 2e-7}, {true}},
    {&kIdentity, -1, 1, {}, {}},
    {&kWholeBatch, -1, 1, {}, {}},
    {&kStopGradient, -1, 1, {}, {}},
    {&kGradient, -1, 1, {}, {std::string("w")}},
    {&kIsFinite, -1, 1, {}, {}},
    {&kCast, -100, 100, {}, {DType::I32}},
    {&kCast, -100, 100, {}, {DType::Bool}},
};

TEST(VectorElementwise, Unary) {
  for (const UnaryCase& c : kUnary) {
    SCOPED_TRACE(text(c.low, " to ", c.high));
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 33}, Shape{4, 4999}, Shape{97, 1031}}) {
      expect_vector(kKernel, *c.op, c.attrs, {random_tensor(DType::F32, shape, 1, c.low, c.high)},
                    c.tolerance);
    }
  }
}

/// With AVX2 and above GELU takes polynomials in pieces. On the left their relative error is below
/// that of the formulas.
TEST(VectorElementwise, GeluInPieces) {
  const double error = machine_choices().isa < Isa::Avx2 ? 48 * kUlp : 6 * kUlp;
  const HostTensor x = random_tensor(DType::F32, {97, 1031}, 1, -3, -0.1);
  for (const std::int64_t without : {std::int64_t{0}, testing::kAvx512}) {
    const testing::Without some(without);
    testing::VectorDevice device(1);
    for (const bool tanh : {false, true})
      testing::expect_like_reference(device, kGelu, {tanh}, {x}, {error, 0});
  }
}

TEST(VectorElementwise, SpecialNumbers) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  std::vector<float> values = {inf,    -inf,   nan,   0.0f,    -0.0f, 1e38f,
                               -1e38f, 1e-38f, 89.0f, -104.0f, 88.8f};
  while (values.size() < 37)
    values.push_back(values[values.size() % 11]);  // in full vectors and in the rest
  const HostTensor x = HostTensor::of<float>({37}, values);
  const std::pair<const OpDef*, Attrs> calls[] = {
      {&kExp, {}},      {&kLog, {}},       {&kSqrt, {}},    {&kTanh, {}},
      {&kErf, {}},      {&kAbs, {}},       {&kRelu, {}},    {&kNegate, {}},
      {&kIsFinite, {}}, {&kGelu, {false}}, {&kGelu, {true}}};
  for (const auto& [op, attrs] : calls) {
    // Denormals may become 0.
    const KernelSetting as_f32;
    SCOPED_TRACE(op->name);
    testing::VectorDevice device(1);
    const std::vector<HostTensor> truth = evaluate(*op, {x}, attrs);
    const testing::KernelRun run =
        testing::run_kernel(device, *op, attrs, {x}, {truth[0].type()}, as_f32);
    testing::expect_close(run.outs[0], truth[0], {2 * kUlp, 1.2e-38});
  }
}

TEST(VectorElementwise, Binary) {
  struct Case {
    const char* name;
    Shape a, b;
  };
  const Case cases[] = {
      {"scalars", {}, {}},
      {"one shape", {5, 1000}, {5, 1000}},
      {"a scalar on the right", {129, 300}, {}},
      {"a scalar on the left", {}, {129, 300}},
      {"a vector along rows that fit a tile", {3, 50, 48}, {48}},
      {"a vector along rows longer than a tile", {7, 5003}, {5003}},
      {"a column", {4, 37, 65}, {4, 37, 1}},
      {"a column on long rows", {4, 2, 4100}, {4, 2, 1}},
      {"a dim in the middle", {6, 9, 33}, {6, 1, 33}},
      {"both repeat", {31, 1, 17}, {1, 29, 1}},
      {"new leading dims", {2, 3, 4, 5}, {4, 1}},
      {"nothing", {0, 4}, {4}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const HostTensor a = random_tensor(DType::F32, c.a, 1, 0.5, 2),
                     b = random_tensor(DType::F32, c.b, 2, 0.5, 2);
    for (const OpDef* op : {&kAdd, &kSub, &kMul, &kDiv, &kMaximum, &kMinimum}) {
      expect_vector(kKernel, *op, {}, {a, b}, {kUlp, 0});
    }
    expect_vector(kKernel, kPower, {}, {a, b}, {2 * kUlp, 0});
    for (const OpDef* op : {&kEqual, &kNotEqual, &kLess, &kLessEqual})
      expect_vector(kKernel, *op, {}, {a, b}, {});
  }
}

/// A processor stops a program that divides like this.
TEST(VectorElementwise, IntegersHaveEveryQuotient) {
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const HostTensor a = HostTensor::of<std::int64_t>({5}, {7, -7, 0, least, -9}),
                   b = HostTensor::of<std::int64_t>({5}, {0, 0, 0, -1, 2});
  expect_vector(kKernel, kDiv, {}, {a, b}, {});
  expect_vector(kKernel, kDiv, {}, {a.cast(DType::I32), b.cast(DType::I32)}, {});
}

TEST(VectorElementwise, InPlace) {
  const HostTensor a = random_tensor(DType::F32, {40, 1000}, 1, 0.5, 2),
                   b = random_tensor(DType::F32, {1000}, 2);
  expect_vector(kKernel, kMul, {}, {a, b}, {kUlp, 0}, in_place(0));
  expect_vector(kKernel, kMul, {}, {b, a}, {kUlp, 0}, in_place(1));
  expect_vector(kKernel, kExp, {}, {a}, {2 * kUlp, 0}, in_place(0));
  expect_vector(kKernel, kAddN, {}, {a, a, a}, {2 * kUlp, 0}, in_place(0));
}

TEST(VectorElementwise, Strides) {
  const HostTensor a = random_tensor(DType::F32, {4, 30, 64}, 1),
                   b = random_tensor(DType::F32, {4, 30, 64}, 2);
  expect_vector(kKernel, kAdd, {}, {a, b}, {kUlp, 0},
                strided({{30 * 192, 192, 1}, {}}));  // a third of a row
  expect_vector(kKernel, kAdd, {}, {a, b}, {kUlp, 0},
                strided({{64, 256, 1}, {}}));  // dims exchanged
  expect_vector(kKernel, kIdentity, {}, {a}, {}, strided({{64, 256, 1}}));
}

TEST(VectorElementwise, OtherTypes) {
  for (const DType dtype : {DType::I32, DType::I64, DType::F64}) {
    const HostTensor a = random_tensor(dtype, {3, 700}, 1, 1, 50),
                     b = random_tensor(dtype, {3, 1}, 2, 1, 50);
    for (const OpDef* op : {&kAdd, &kSub, &kMul, &kDiv, &kMaximum, &kMinimum, &kEqual, &kLess}) {
      expect_vector(kKernel, *op, {}, {a, b}, {});
    }
    for (const DType to : {DType::F32, DType::I32, DType::I64, DType::Bool}) {
      if (to != dtype) expect_vector(kKernel, kCast, {to}, {a}, {kUlp, 0});  // rounding to f32
    }
    expect_vector(kKernel, kSelect, {}, {random_tensor(DType::Bool, {700}, 3), a, b}, {});
  }
  const HostTensor p = random_tensor(DType::Bool, {50, 77}, 1),
                   q = random_tensor(DType::Bool, {50, 1}, 2);
  for (const OpDef* op : {&kLogicalAnd, &kLogicalOr}) expect_vector(kKernel, *op, {}, {p, q}, {});
  expect_vector(kKernel, kLogicalNot, {}, {p}, {});
  expect_vector(kKernel, kSelect, {},
                {p, random_tensor(DType::F32, {}, 3), random_tensor(DType::F32, {50, 77}, 4)}, {});
}

TEST(VectorElementwise, Gradients) {
  const HostTensor x = random_tensor(DType::F32, {9, 3000}, 1, -6, 6),
                   dy = random_tensor(DType::F32, {9, 3000}, 2);
  // Terms cancel where the slope is near 0.
  expect_vector(kKernel, kSiluGrad, {}, {x, dy}, {4 * kUlp, 4 * kUlp});
  expect_vector(kKernel, kGeluGrad, {false}, {x, dy}, {4 * kUlp, 4 * kUlp});
  expect_vector(kKernel, kGeluGrad, {true}, {x, dy}, {4 * kUlp, 8 * kUlp});
  const float inf = std::numeric_limits<float>::infinity();
  const HostTensor far = HostTensor::of<float>(
                       {9}, {inf, -inf, std::nanf(""), 1e38F, -1e38F, 1e14F, -1e14F, 6.1F, -100}),
                   ones = HostTensor::of<float>({9}, std::vector<float>(9, 1));
  for (const bool tanh : {false, true})
    expect_vector(kKernel, kGeluGrad, {tanh}, {far, ones}, {4 * kUlp, 4 * kUlp});
}

TEST(VectorElementwise, Broadcast) {
  for (const Shape& from : {Shape{}, Shape{33}, Shape{6, 1, 33}, Shape{5, 1}}) {
    const std::vector<std::int64_t> shape = {6, 5, 33};
    expect_vector(kKernel, kBroadcast, {shape}, {random_tensor(DType::F32, from, 1)}, {});
    expect_vector(kKernel, kBroadcast, {shape}, {random_tensor(DType::I64, from, 1, 0, 9)}, {});
  }
}

/// x [r, d], bias [d], column [r, 1], scale []: uses of every kind of operand, values used twice,
/// several results.
std::shared_ptr<const Graph> body(Shape big, bool many) {
  Builder b;
  const Value x = b.batch("0", {DType::F32, big, {}}),
              bias = b.batch("1", {DType::F32, {big.back()}, {}});
  const Value column = b.batch("2", {DType::F32, {big[0], 1}, {}}),
              scale = b.batch("3", {DType::F32, {}, {}});
  const Value sum = x + bias, limit = exp(scale) * 0.5;
  const Value y = select(less(sum, limit), gelu(sum, GeluForm::Tanh), sum * column + limit);
  b.output(Output::Kind::Metric, "y", y);
  if (many) {
    b.output(Output::Kind::Metric, "again",
             y * x);  // reads x after y may have been written over it
    b.output(Output::Kind::Metric, "raw", x);
    b.output(Output::Kind::Metric, "limit", broadcast_to(limit, big));
    b.output(Output::Kind::Metric, "column", broadcast_to(column, big));
    b.output(Output::Kind::Metric, "less", less(sum, limit));
  }
  return std::make_shared<Graph>(b.finish());
}

TEST(VectorElementwise, Fused) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 5}, Shape{70, 300}, Shape{11, 4999}}) {
    SCOPED_TRACE(to_text(shape));
    const std::vector<HostTensor> ins = {
        random_tensor(DType::F32, shape, 1), random_tensor(DType::F32, {shape[1]}, 2),
        random_tensor(DType::F32, {shape[0], 1}, 3), random_tensor(DType::F32, {}, 4)};
    for (const bool many : {false, true}) {
      for (const int operand : {-1, 0}) {
        expect_vector(kKernel, kFused, {body(shape, many)}, ins, {8 * kUlp, 4 * kUlp},
                      testing::in_place(operand));
      }
    }
  }
}

TEST(VectorRandom, EqualsReferenceBits) {
  const HostTensor step = HostTensor::scalar<std::int64_t>(7);
  for (const OpDef* op : {&kRandomNormal, &kRandomUniform, &kRandomTruncatedNormal}) {
    for (const std::int64_t size : {1, 3, 4, 1023, 5000}) {
      const Attrs attrs = {std::vector<std::int64_t>{size}, std::string("key")};
      expect_vector("cpu:random", *op, attrs, {step}, {});
    }
  }
}

/// Of a part of a tensor, in a later micro-batch too.
TEST(VectorRandom, OfAPartEqualsThatOfTheWhole) {
  const HostTensor step = HostTensor::scalar<std::int64_t>(7);
  const Shape global{6, 5, 101};
  const Attrs whole = {std::vector<std::int64_t>{6, 5, 101}, std::string("key")};
  testing::VectorDevice device(2);
  for (const OpDef* op : {&kRandomNormal, &kRandomUniform, &kRandomTruncatedNormal}) {
    const HostTensor truth = evaluate(*op, {step}, whole)[0];
    for (const auto& [first, size] : {std::pair(Shape{0, 0, 0}, global),
                                      {Shape{2, 0, 0}, Shape{2, 5, 101}},
                                      {Shape{0, 3, 0}, Shape{4, 2, 101}},
                                      {Shape{1, 1, 33}, Shape{3, 3, 50}},
                                      {Shape{0, 0, 99}, Shape{4, 5, 1}}}) {
      for (const std::int64_t microbatch : {0, 1}) {
        if (first[0] + size[0] + 2 * microbatch > 6) continue;
        SCOPED_TRACE(text(op->name, " ", first, " ", size, " ", microbatch));
        HostTensor wanted(DType::F32, size);
        for (std::int64_t i = 0; i < wanted.numel(); ++i) {
          const std::int64_t x = i / (size[1] * size[2]) + first[0] + 2 * microbatch,
                             y = i / size[2] % size[1] + first[1], z = i % size[2] + first[2];
          wanted.set(i, truth.at((x * 5 + y) * 101 + z));
        }
        KernelSetting setting;
        setting.ins = {{}};
        setting.outs = {{global, first, {2, 0, 0}, global}};
        setting.microbatch = microbatch;
        const Attrs attrs = {std::vector<std::int64_t>(size.begin(), size.end()),
                             std::string("key")};
        const testing::KernelRun run =
            testing::run_kernel(device, *op, attrs, {step}, {wanted.type()}, setting);
        EXPECT_EQ(run.kernel, "cpu:random");
        testing::expect_close(run.outs[0], wanted, {});
      }
    }
  }
}

TEST(VectorDropout, EqualsReferenceBits) {
  const HostTensor step = HostTensor::scalar<std::int64_t>((std::int64_t{3} << 32) + 5);
  for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{130, 257}, Shape{3, 50001}}) {
    for (const double p : {0.1, 0.5}) {
      expect_vector("hwy:dropout", kDropout, {p, std::string("key")},
                    {random_tensor(DType::F32, shape, 1), step}, {kUlp, 0});
    }
  }
}

/// Rows longer than the words that are drawn together, which begin anywhere within a block of four.
TEST(VectorDropout, RowsMayBeginWithinABlock) {
  const HostTensor step = HostTensor::scalar<std::int64_t>(7),
                   whole = random_tensor(DType::F32, {5, 403}, 1, 1, 2);
  const Attrs attrs = {0.3, std::string("key")};
  const HostTensor truth = evaluate(kDropout, {whole, step}, attrs)[0];
  testing::VectorDevice device(1);
  for (const std::int64_t first : {0, 1, 2, 3, 200}) {
    for (const std::int64_t columns : {1, 3, 16, 47, 48, 50, 203}) {
      SCOPED_TRACE(text("columns ", first, " to ", first + columns));
      HostTensor part(DType::F32, {5, columns}), wanted = part.clone();
      for (std::int64_t i = 0; i < part.numel(); ++i) {
        const std::int64_t at = i / columns * 403 + first + i % columns;
        part.set(i, whole.at(at));
        wanted.set(i, truth.at(at));
      }
      const ShardInfo shard{{5, 403}, {0, first}, {0, 0}, {5, 403}}, scalar{};
      KernelSetting setting;
      setting.ins = {shard, scalar};
      setting.outs = {shard};
      const testing::KernelRun run =
          testing::run_kernel(device, kDropout, attrs, {part, step}, {part.type()}, setting);
      testing::expect_close(run.outs[0], wanted, {1e-7, 0});
    }
  }
}

TEST(VectorDropout, MasksBelongToTheWholeTensor) {
  const HostTensor step = HostTensor::scalar<std::int64_t>(7),
                   whole = random_tensor(DType::F32, {8, 6, 10}, 1, 1, 2);
  const Attrs attrs = {0.3, std::string("key")};
  const HostTensor truth = evaluate(kDropout, {whole, step}, attrs)[0];
  testing::VectorDevice device(2);
  for (std::int64_t microbatch = 0; microbatch < 4;
       ++microbatch) {  // rows 2 m, 2 m + 1, of them columns 3, 4, 5
    HostTensor part(DType::F32, {2, 3, 10}), wanted = part.clone();
    for (std::int64_t i = 0; i < part.numel(); ++i) {
      const std::int64_t at = ((2 * microbatch + i / 30) * 6 + 3 + i / 10 % 3) * 10 + i % 10;
      part.set(i, whole.at(at));
      wanted.set(i, truth.at(at));
    }
    const ShardInfo shard{{8, 6, 10}, {0, 3, 0}, {2, 0, 0}, {8, 6, 10}}, scalar{};
    KernelSetting setting;
    setting.ins = {shard, scalar};
    setting.outs = {shard};
    setting.microbatch = microbatch;
    const testing::KernelRun run =
        testing::run_kernel(device, kDropout, attrs, {part, step}, {part.type()}, setting);
    EXPECT_EQ(run.kernel, "hwy:dropout");
    testing::expect_close(run.outs[0], wanted, {});
  }
}

/// Whether or not there are instructions for them, and wherever in a vector a number lies.
TEST(VectorConvert, IsExactOnEveryInstructionSet) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers = {
      0,    -0.0f, 1,        -2.5f,    65504,   65519,   65520,        7e4f,    -1e30f,
      kInf, -kInf, 6e-5f,    5.9e-8f,  2.9e-8f, 3.0e-8f, 1e-40f,       1.0005f, 1.00048828125f,
      2049, 2051,  0.33333f, -1.9999f, 3.4e38f, 1e-7f,   std::nanf("")};
  const auto n = static_cast<std::int64_t>(numbers.size());
  for (const testing::Instructions& instructions : testing::kInstructions) {
    const testing::Without without(instructions.without);
    for (const DType dtype : {DType::BF16, DType::F16}) {
      for (std::int64_t first = 0; first < n; ++first) {
        std::vector<std::uint16_t> narrowed(numbers.size());
        std::vector<float> widened(numbers.size());
        cpu::narrow(dtype, numbers.data() + first, narrowed.data(), n - first);
        cpu::widen(dtype, narrowed.data(), widened.data(), n - first);
        for (std::int64_t i = first; i < n; ++i) {
          const float x = numbers[static_cast<std::size_t>(i)];
          const float want = dtype == DType::F16 ? from_f16(to_f16(x)) : from_bf16(to_bf16(x)),
                      got = widened[static_cast<std::size_t>(i - first)];
          EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
              << text(instructions.name, ", ", dtype, ": ", x, " became ", got);
        }
      }
    }
  }
}

/// Every sign, exponent and last bit of bf16, with what may lie below it: in whole vectors, two at
/// a time, and in what is left.
TEST(VectorConvert, RoundsToTheBitsOfToBf16) {
  std::vector<float> numbers;
  for (const std::uint32_t below : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
    for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
      numbers.push_back(std::bit_cast<float>(upper << 16 | below));
  }
  numbers.push_back(1.0005f);
  const auto n = static_cast<std::int64_t>(numbers.size());
  for (const testing::Instructions& instructions : testing::kInstructions) {
    const testing::Without without(instructions.without);
    std::vector<std::uint16_t> narrowed(numbers.size());
    cpu::narrow(DType::BF16, numbers.data(), narrowed.data(), n);
    int wrong = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) wrong += narrowed[i] != to_bf16(numbers[i]);
    EXPECT_EQ(wrong, 0) << instructions.name;
  }
}

}  // namespace

}  // namespace tessera
