// Host tensors, and the rounding of 16-bit floats to and from f32.
#include "tessera/tensor/host_tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The bits that `value` gets in a 16-bit dtype.
std::uint16_t bits_of(DType dtype, double value) {
  HostTensor tensor(dtype, {});
  tensor.set(0, value);
  std::uint16_t out = 0;
  std::memcpy(&out, tensor.bytes().data(), sizeof out);
  return out;
}

/// The value of all 16-bit patterns must survive a conversion and back.
void expect_exact(DType dtype) {
  HostTensor tensor(dtype, {1 << 16});
  for (int i = 0; i < 1 << 16; ++i) {
    const std::uint16_t bits = static_cast<std::uint16_t>(i);
    std::memcpy(tensor.bytes().data() + 2 * i, &bits, 2);
  }
  const HostTensor back = tensor.cast(DType::F32).cast(dtype);
  for (int i = 0; i < 1 << 16; ++i) {
    if (std::isnan(tensor.at(i))) {
      EXPECT_TRUE(std::isnan(back.at(i))) << i;
    } else {
      EXPECT_EQ(std::memcmp(tensor.bytes().data() + 2 * i, back.bytes().data() + 2 * i, 2), 0) << i;
    }
  }
}

TEST(HostTensor, SixteenBitsSurviveF32) {
  expect_exact(DType::BF16);
  expect_exact(DType::F16);
}

struct RoundingCase {
  const char* name;
  DType dtype;
  double value;
  std::uint16_t bits;
};
const RoundingCase kRounding[] = {
    {"one", DType::BF16, 1.0, 0x3F80},
    {"a tie goes to the even neighbour below", DType::BF16, 1.0 + 0x1p-8, 0x3F80},
    {"a tie goes to the even neighbour above", DType::BF16, 1.0 + 3 * 0x1p-8, 0x3F82},
    {"just above a tie", DType::BF16, 1.0 + 0x1p-8 + 0x1p-20, 0x3F81},
    {"minus zero", DType::BF16, -0.0, 0x8000},
    {"too large", DType::BF16, std::numeric_limits<float>::max(), 0x7F80},
    {"infinity", DType::BF16, -kInfinity, 0xFF80},
    {"one", DType::F16, 1.0, 0x3C00},
    {"a tie goes to the even neighbour below", DType::F16, 1.0 + 0x1p-11, 0x3C00},
    {"a tie goes to the even neighbour above", DType::F16, 1.0 + 3 * 0x1p-11, 0x3C02},
    {"the largest", DType::F16, 65504.0, 0x7BFF},
    {"rounds to the largest", DType::F16, 65519.0, 0x7BFF},
    {"rounds to infinity", DType::F16, 65520.0, 0x7C00},
    {"far too large", DType::F16, -1e30, 0xFC00},
    {"infinity", DType::F16, kInfinity, 0x7C00},
    {"the smallest normal", DType::F16, 0x1p-14, 0x0400},
    {"the largest subnormal", DType::F16, 0x1p-14 - 0x1p-24, 0x03FF},
    {"rounds up to a normal", DType::F16, 0x1p-14 - 0x1p-26, 0x0400},
    {"the smallest subnormal", DType::F16, -0x1p-24, 0x8001},
    {"a tie with zero", DType::F16, 0x1p-25, 0x0000},
    {"above that tie", DType::F16, 0x1.8p-25, 0x0001},
    {"minus zero", DType::F16, -0.0, 0x8000},
};

TEST(HostTensor, RoundsToNearestEven) {
  for (const RoundingCase& c : kRounding) {
    EXPECT_EQ(bits_of(c.dtype, c.value), c.bits) << to_text(c.dtype) << ": " << c.name;
  }
  for (const DType dtype : {DType::BF16, DType::F16}) {
    HostTensor tensor(dtype, {});
    tensor.set(0, std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(std::isnan(tensor.at(0)));
  }
  // A NaN whose payload lies in the bits that are cut off must not become infinity.
  HostTensor f32(DType::F32, {});
  f32.data<float>()[0] = std::bit_cast<float>(0x7F800001u);
  EXPECT_TRUE(std::isnan(f32.cast(DType::BF16).at(0)));
  EXPECT_TRUE(std::isnan(f32.cast(DType::F16).at(0)));
}

TEST(HostTensor, HoldsWhatItIsGiven) {
  const HostTensor tensor = HostTensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(to_text(tensor.type()), "f32[2,2]");
  EXPECT_EQ(tensor.at(3), 4.0);
  EXPECT_EQ(tensor.bytes().size(), 16u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % 64, 0u);
  EXPECT_EQ(HostTensor(DType::I64, {3}).at(2), 0.0);
  EXPECT_EQ(HostTensor::scalar<std::int64_t>(7).data<std::int64_t>()[0], 7);
  EXPECT_THROW(tensor.data<double>(), Broken);
  EXPECT_THROW(HostTensor::of<float>({2}, {1}), Broken);
  HostTensor flag(DType::Bool, {1});
  flag.set(0, 3.0);
  EXPECT_EQ(flag.at(0), 1.0);
}

TEST(HostTensor, CopiesShareAndClonesDoNot) {
  HostTensor tensor = HostTensor::of<float>({1}, {1});
  HostTensor shared = tensor;
  const HostTensor own = tensor.clone();
  shared.set(0, 2);
  EXPECT_EQ(tensor.at(0), 2.0);
  EXPECT_EQ(own.at(0), 1.0);
}

TEST(DTypes, NamesReadBack) {
  for (const DType dtype :
       {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32, DType::I64, DType::Bool}) {
    EXPECT_EQ(parse_dtype(to_text(dtype)), dtype);
    EXPECT_GT(size_of(dtype), 0);
  }
  EXPECT_THROW(parse_dtype("float"), Error);
}

}  // namespace
}  // namespace tessera
