/// What the ops' functions refuse, and what they make.

#include <gtest/gtest.h>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/top_k.h"

namespace tessera::test {

namespace {

/// Values to misuse.
struct World {
  Builder builder;
  Value x = builder.batch("x", {DType::F32, {2, 3}, {}});
  Value y = builder.batch("y", {DType::F32, {4, 3}, {}});
  Value flags = builder.batch("flags", {DType::Bool, {2, 3}, {}});
  Value ids = builder.batch("ids", {DType::I32, {2}, {}});
  Value longs = builder.batch("longs", {DType::I64, {2}, {}});
  Value start = builder.batch("start", {DType::I32, {}, {}});
};

struct Refusal {
  const char* name;
  void (*make)(World&);
  const char* message;  // a part of it
};

const Refusal kRefusals[] = {
    {"shapes that do not broadcast", [](World& w) { w.x + w.y; }, "sizes 2 and 4 meet"},
    {"dtypes that differ", [](World& w) { w.x + w.ids; },
     "operands are f32[2,3] and i32[2]; cast one"},
    {"an activation of integers", [](World& w) { gelu(w.ids, GeluForm::Erf); },
     "gelu: needs floats, x is i32[2]"},
    {"logic of floats", [](World& w) { logical_and(w.flags, w.x); },
     "operand 1 is f32[2,3], not bool"},
    {"a condition that is no bool", [](World& w) { select(w.x, w.x, w.x); },
     "the condition is f32[2,3]"},
    {"values of two dtypes", [](World& w) { select(w.flags, w.x, w.start); },
     "cast one so that the dtypes agree"},
    {"integers are finite", [](World& w) { is_finite(w.ids); }, "only floats can be infinite"},
    {"a dim that is not there", [](World& w) { sum(w.x, 2); }, "there is no dim 2 in f32[2,3]"},
    {"dims out of order",
     [](World& w) {
       sum(w.x, {1, 0});
     },
     "dims [1,0] of x, which is f32[2,3]"},
    {"a sum of bools", [](World& w) { sum(w.flags, 0); }, "cast it to a number"},
    {"a mean over a missing dim", [](World& w) { mean(w.x, {3}); }, "mean: there is no dim 3"},
    {"a shape to which x does not repeat",
     [](World& w) {
       broadcast_to(w.x, {3, 3});
     },
     "sizes 2 and 3 meet"},
    {"a smaller shape", [](World& w) { broadcast_to(w.x, {3}); }, "does not repeat to [3]"},
    {"nothing to add", [](World&) { add_n({}); }, "nothing to add"},
    {"a sum of two types",
     [](World& w) {
       add_n({w.x, w.y});
     },
     "operand 1 is f32[4,3]"},
    {"a reshape that loses elements", [](World& w) { reshape(w.x, {5}); },
     "has 6 elements, [5] has 5"},
    {"a reshape that does not divide",
     [](World& w) {
       reshape(w.x, {4, -1});
     },
     "does not divide into [4,-1]"},
    {"two open sizes",
     [](World& w) {
       reshape(w.x, {-1, -1});
     },
     "more than one size open"},
    {"a dim twice",
     [](World& w) {
       transpose(w.x, {0, 0});
     },
     "[0,0] is not an order of the 2 dims"},
    {"a window that sticks out", [](World& w) { slice(w.x, 1, 2, 2); }, "window [2, 4) of dim 1"},
    {"a negative start", [](World& w) { slice(w.x, 1, -1, 2); }, "window [-1, 1) of dim 1"},
    {"a step of 0", [](World& w) { strided_slice(w.x, 1, 0, 2, 0); }, "the step is 0"},
    {"steps that lead out", [](World& w) { strided_slice(w.x, 1, 0, 2, 3); },
     "2 elements of dim 1 from 0 on in steps of 3 do not lie inside its size 3"},
    {"a start that is no scalar", [](World& w) { dynamic_slice(w.x, 1, w.ids, 2); },
     "start is i32[2]"},
    {"too large a window", [](World& w) { dynamic_slice(w.x, 1, w.start, 4); },
     "does not lie inside its size 3"},
    {"padded to less", [](World& w) { pad(w.x, 1, 0, 2); }, "does not lie inside its size 2"},
    {"parts that do not fit",
     [](World& w) {
       concat({w.x, w.y}, 1);
     },
     "may differ only in dim 1"},
    {"nothing to join", [](World&) { concat({}, 0); }, "nothing to join"},
    {"ids of i64", [](World& w) { gather(w.longs, w.x); }, "ids are i64[2]; cast them to i32"},
    {"a table of no dims", [](World& w) { gather(w.ids, w.start); },
     "there is no dim 0 in the table, i32[]"},
    {"a dim that the table lacks", [](World& w) { gather(w.ids, w.x, 2); },
     "there is no dim 2 in the table, f32[2,3]"},
    {"more indices than dims",
     [](World& w) {
       gather_nd(reshape(w.ids, {1, 2}), reshape(w.x, {6}));
     },
     "indices are i32[1,2], x is f32[6]"},
    {"indices of floats", [](World& w) { gather_nd(w.x, w.x); }, "indices are f32[2,3]"},
    {"rows without ids", [](World& w) { scatter_add(w.ids, w.y, 9); }, "one row for each id"},
    {"more than a row has", [](World& w) { top_k(w.x, 4); }, "x is f32[2,3], k is 4"},
    {"the largest of bools", [](World& w) { top_k(w.flags, 1); }, "x is bool[2,3]"},
    {"any of floats", [](World& w) { any(w.x, {0}); }, "any: x is f32[2,3], not bool"},
    {"the largest along no dim", [](World& w) { arg_max(w.x, 2); }, "there is no dim 2"},
    {"ids of other rows",
     [](World& w) {
       take_along(w.y, reshape(w.ids, {1, 2}));
     },
     "x is f32[4,3], ids are i32[1,2]"},
    {"a pick without ids", [](World& w) { pick(w.y, w.ids); }, "one id for each row"},
    {"a place without elements", [](World& w) { place(w.ids, w.x, 3); }, "one element for each id"},
    {"an iota over no dim", [](World& w) { iota(w.builder, {2}, 1, DType::I32); },
     "no dim 1 in [2]"},
    {"a step of i32", [](World& w) { dropout(w.x, w.start, 0.5, "d"); }, "step is i32[]"},
    {"p of 1", [](World& w) { dropout(w.x, w.builder.constant(0, DType::I64), 1, "d"); },
     "p is 1; it must be"},
    {"a random tensor without a step", [](World& w) { random_normal(w.builder, {2}, w.x, "n"); },
     "step is f32[2,3]"},
};

}  // namespace

TEST(Builders, RefuseWithTheReason) {
  for (const Refusal& row : kRefusals) {
    SCOPED_TRACE(row.name);
    World world;
    try {
      row.make(world);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.message), std::string::npos) << error.what();
    }
  }
}

TEST(Builders, ShapesOfResults) {
  World w;
  EXPECT_EQ(reshape(w.x, {3, -1}).shape(), Shape({3, 2}));
  EXPECT_EQ(sum(w.x, -1).shape(), Shape({2}));
  EXPECT_EQ(max(w.x, -2, KeepDim::Yes).shape(), Shape({1, 3}));
  EXPECT_EQ(sum_all(w.x).shape(), Shape());
  EXPECT_EQ(mean(w.x, {0, 1}, KeepDim::Yes).shape(), Shape({1, 1}));
  EXPECT_EQ(slice(w.x, -1, 1, 2).shape(), Shape({2, 2}));
  EXPECT_EQ(concat({w.x, w.y}, 0).shape(), Shape({6, 3}));
  EXPECT_EQ(gather(w.ids, w.y).shape(), Shape({2, 3}));
  EXPECT_EQ(one_hot(w.ids, 7).shape(), Shape({2, 7}));
  EXPECT_EQ(to_text(iota(w.builder, {2, 4}, -1, DType::I64).type()), "i64[2,4]");
}

/// What would change nothing makes no node.
TEST(Builders, NothingToDo) {
  World w;
  EXPECT_EQ(reshape(w.x, {2, 3}).id(), w.x.id());
  EXPECT_EQ(broadcast_to(w.x, {2, 3}).id(), w.x.id());
  EXPECT_EQ(cast(w.x, DType::F32).id(), w.x.id());
  EXPECT_EQ(add_n({w.x}).id(), w.x.id());
  EXPECT_EQ(sum(w.x, std::vector<std::int64_t>{}).id(), w.x.id());
}

struct Rule {
  const char* name;
  Shape from, to;
  const char* rule;
};
const Rule kReshapeRules[] = {
    {"a split", {6, 8}, {6, 2, 4}, "r0 (r1 r2) -> r0 r1 r2 | each 0"},
    {"a merge", {2, 4, 3}, {8, 3}, "r0 r1 r2 -> (r0 r1) r2 | each 0"},
    {"both", {4, 2, 6}, {8, 3, 2}, "r0 r1 (r2 r3) -> (r0 r1) r2 r3 | each 0"},
    {"dims of size 1 have no factor", {2, 1, 3}, {1, 2, 3}, "r0 . r1 -> . r0 r1 | each 0"},
    {"dims that overlap share a middle", {8, 4}, {2, 16}, "(r0 r1) r2 -> r0 (r1 r2) | each 0"},
    {"a result dim that no cut divides",
     {4, 6},
     {2, 3, 4},
     "(r0 r1) r2 -> r0 r3 r4 | r1:whole r2:whole r3:whole r4:whole | each 0"},
    {"behind a common divisor all is whole",
     {6, 4},
     {4, 6},
     "(r0 r1) r2 -> (r0 r3) r4 | r1:whole r2:whole r3:whole r4:whole | each 0"},
};

TEST(Builders, RulesOfReshape) {
  for (const Rule& row : kReshapeRules) {
    SCOPED_TRACE(row.name);
    Builder builder;
    const Value y = reshape(builder.batch("x", {DType::F32, row.from, {}}), row.to);
    EXPECT_EQ(to_text(builder.so_far().factors(y.id().node)), row.rule);
  }
}

}  // namespace tessera::test
