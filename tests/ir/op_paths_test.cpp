// What ops are called, and notes on them.
#include "tessera/ir/op_paths.h"

#include <gtest/gtest.h>

#include "ir/small_ops.h"

namespace tessera {
namespace {

const TensorType kType{DType::F32, {2, 3}, {}};

TEST(OpPaths, PathsAreNumberedFromTheSecondOn) {
  Builder b;
  const Value x = b.batch("x", kType);
  Value y = b.add(kTestAdd, {x, x});
  {
    const Scope layer(b, "layers.0");
    const Value w = b.state("w", kType, Role::Parameter, {});
    for (int i = 0; i < 2; ++i) {
      y = b.add(kTestAdd, {y, w});
      y = b.add(kTestAdd, {y, w});
      b.set_name(y, "residual");
    }
  }
  const std::string op(kTestAdd.name), block = "layers.0.";
  EXPECT_EQ(op_paths(b.so_far()),
            (std::vector<std::string>{"x", op, block + "w", block + op, block + "residual",
                                      block + op + "3", block + "residual2"}));
}

TEST(OpPaths, ANoteNamesTheOpThatMadeTheValue) {
  Builder b;
  const Value x = b.batch("x", kType);
  const Value first = b.add(kTestAdd, {x, x});
  const Value second = b.add(kTestAdd, {first, x});
  b.note(second, 7);
  const std::string path = text(kTestAdd.name, 2);
  ASSERT_EQ(b.notes().size(), 1U);
  EXPECT_EQ(b.notes()[0].op, path);
  EXPECT_EQ(std::any_cast<int>(b.notes()[0].what), 7);
  EXPECT_EQ(b.node(second).name, path) << "the path stays, whatever passes do to ops before it";
  EXPECT_EQ(op_paths(b.so_far())[2], path);
  EXPECT_THROW(b.note(x, 7), Error) << "nothing computes a batch input";
}

}  // namespace
}  // namespace tessera
