/// The op `bucket`, which no row of cases.h has: passes insert it.

#include "tessera/ops/bucket.h"

#include <gtest/gtest.h>

#include <array>

#include "tessera/base/text.h"
#include "tessera/ops/interpret.h"
#include "tessera/ops/reference.h"

namespace tessera::test {
namespace {

HostTensor counted(DType dtype, Shape shape, double first) {
  HostTensor out({dtype, shape, {}});
  for (std::int64_t i = 0; i < out.numel(); ++i) out.set(i, first + static_cast<double>(i));
  return out;
}

TEST(Bucket, HoldsOneOperandAfterAnother) {
  for (const DType dtype : {DType::F32, DType::F64, DType::I32}) {
    const HostTensor got = evaluate(kBucket,
                                    {counted(dtype, {2, 3}, 0), counted(dtype, {}, 6),
                                     counted(dtype, {0, 4}, 0), counted(dtype, {3}, 7)},
                                    {})[0];
    EXPECT_EQ(to_text(got.type()), text(to_text(dtype), "[10]"));
    for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(got.at(i), static_cast<double>(i));
  }
}

TEST(Bucket, RefusesTwoDtypes) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {2}, {}}),
              n = builder.batch("n", {DType::I32, {2}, {}});
  try {
    builder.add(kBucket, {x, n});
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("bucket: operand 0 is f32[2], operand 1 is i32[2]; "
                        "cast them to one dtype"),
              std::string::npos)
        << error.what();
  }
}

/// The planner relies on it: an operand that is there already stays, the others come to it.
TEST(Bucket, PartsAreWhereTheReferencePutsThem) {
  const TensorType a{DType::F32, {3}, {}}, b{DType::F32, {2, 2}, {}}, all{DType::F32, {7}, {}};
  const Attrs none;
  const OpCall call(kBucket, {&a, &b}, none, {&all});
  EXPECT_EQ(kBucket.part(call, 0), 0);
  EXPECT_EQ(kBucket.part(call, 1), 3);
  std::array<float, 7> out = {0, 0, 0, 4, 5, 6, 7};
  std::array<float, 3> first = {1, 2, 3};
  std::array<RefOperand, 2> ins = {RefOperand{a, first.data(), {}, {}, {}},
                                   RefOperand{b, out.data() + 3, {}, {}, {}}};
  std::array<RefOperand, 1> outs = {RefOperand{all, out.data(), {}, {}, {}}};
  RefCall ref(call, ins, outs, 0);
  kBucket.reference.f32(ref);
  EXPECT_EQ(out, (std::array<float, 7>{1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace tessera::test
