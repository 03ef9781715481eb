// Shapes and types: broadcasting, strides, text.
#include "tessera/tensor/type.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

TEST(Shape, SizesAndStrides) {
  const Shape shape = {4, 256, 768};
  EXPECT_EQ(to_text(shape), "[4,256,768]");
  EXPECT_EQ(shape.numel(), 4 * 256 * 768);
  EXPECT_EQ(to_text(shape.strides()), "[196608,768,1]");
  EXPECT_EQ(shape.back(), 768);
  EXPECT_EQ(shape.back(2), 4);
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ((Shape{3, 0}).numel(), 0);
  Shape shorter = shape;
  shorter.erase(1);
  EXPECT_EQ(shorter, (Shape{4, 768}));
  EXPECT_FALSE((Shape{1}) == Shape());
  EXPECT_EQ(Shape::of(Shape::kMaxDims, 1).ndim(), Shape::kMaxDims);
  EXPECT_THROW(Shape::of(Shape::kMaxDims + 1, 1), Error);
}

struct BroadcastCase {
  Shape a, b;
  const char* result;  // empty: refused
};

TEST(Shape, Broadcasting) {
  const BroadcastCase cases[] = {
      {{2, 3}, {2, 3}, "[2,3]"}, {{2, 3}, {3}, "[2,3]"}, {{2, 3}, {}, "[2,3]"},
      {{2, 1}, {1, 3}, "[2,3]"}, {{0}, {1}, "[0]"},      {{4, 1, 3}, {5, 1}, "[4,5,3]"},
      {{2, 3}, {2}, ""},         {{0}, {2}, ""},
  };
  for (const BroadcastCase& c : cases) {
    for (const auto& [a, b] : {std::pair(c.a, c.b), std::pair(c.b, c.a)}) {
      if (*c.result != '\0') {
        EXPECT_EQ(to_text(broadcast(a, b)), c.result);
      } else {
        EXPECT_THROW(broadcast(a, b), Error) << to_text(a) << to_text(b);
      }
    }
  }
}

TEST(Type, TextAndBack) {
  for (const char* line : {"f32[]", "f64[1]", "bf16[4,256]", "f16[0,2]", "i32[3]",
                           "i64[9007199254740993]", "bool[2,2]", "f32[768,768]@packed:2359296"}) {
    EXPECT_EQ(to_text(parse_type(line)), line);
  }
  EXPECT_EQ(parse_type("f32[4, 8]"), (TensorType{DType::F32, {4, 8}, {}}));
  EXPECT_EQ(parse_type("bf16[4,8]").bytes(), 64);
  EXPECT_EQ(parse_type("bf16[4,8]@packed:100").bytes(), 100);
  EXPECT_EQ(parse_type("bool[3]").bytes(), 3);
  for (const char* bad :
       {"", "f32", "f32[", "f32]4[", "f8[4]", "f32[-1]", "f32[x]", "f32[4,]", "f32[4]packed",
        "f32[4]@packed", "f32[4]@:12", "f32[4]@packed:", "f32[4]@a[:8",
        "f32[0,4294967296,4294967296]", "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"}) {
    EXPECT_THROW(parse_type(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace tessera
