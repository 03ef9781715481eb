// Strategies of single ops: their matrices, maps, slices and groups, and all that is refused.
#include "tessera/shard/op_strategy.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/base/error.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/shard/tensor_strategy.h"

namespace tessera {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

/// One op on inputs of these shapes.
struct Op {
  const char* name;
  std::vector<Shape> shapes;
  Value (*make)(const std::vector<Value>& in);
};

Value product(const std::vector<Value>& in) { return matmul(in[0], in[1]); }
Value product_tb(const std::vector<Value>& in) { return matmul(in[0], in[1], {.trans_b = true}); }
Value product_ta(const std::vector<Value>& in) { return matmul(in[0], in[1], {.trans_a = true}); }
Value sum(const std::vector<Value>& in) { return in[0] + in[1]; }
Value lookup(const std::vector<Value>& in) { return gather(in[0], in[1]); }
Value softmax_last(const std::vector<Value>& in) { return softmax(in[0], -1); }
Value heads(const std::vector<Value>& in) { return reshape(in[0], {8, 4, 6}); }
Value attend(const std::vector<Value>& in) { return attention(in[0], in[1], in[2], {}, {}, {}).y; }
Value turned(const std::vector<Value>& in) { return transpose(in[0], {1, 0}); }

OpSpread spread_op(const Op& op, OpShard shard, std::int64_t devices) {
  Builder builder;
  std::vector<Value> in;
  for (const Shape& shape : op.shapes) {
    const DType dtype = op.make == lookup && in.empty() ? DType::I32 : DType::F32;
    in.push_back(builder.batch(text("in", in.size()), {dtype, shape, {}}));
  }
  Value out = op.make(in);
  builder.output(Output::Kind::Metric, "out", out);
  shard.ops = op.name;
  return spread(builder.so_far(), out.id().node, shard, devices);
}

std::string texts(const std::vector<TensorLayout>& layouts) { return join(layouts, " "); }

// ---- matrices and maps
// ---------------------------------------------------------------------------------

struct MatrixCase {
  const char* name;
  Op op;
  std::int64_t devices;
  Splits splits;
  const char *ins, *out;
};
const MatrixCase kMatrices[] = {
    {"rows and what is summed over, on all",
     {"matmul", {{16, 32}, {32, 16}}, product},
     8,
     {{2, 4}, {4, 1}},
     "(2, 4, 1 | 2, 1) (2, 4, 1 | 1, -1)",
     "(2, 4, 1 | 2, -1)"},
    {"ranks that are left over repeat, as the last dim",
     {"matmul", {{16, 32}, {32, 16}}, product},
     8,
     {{2, 2}, {2, 1}},
     "(2, 2, 1, 2 | 3, 2) (2, 2, 1, 2 | 2, -1)",
     "(2, 2, 1, 2 | 3, -1)"},
    {"the second one transposed",
     {"matmul", {{256, 784}, {512, 784}}, product_tb},
     8,
     {{4, 2}, {1, 2}},
     "(4, 2, 1 | 2, 1) (4, 2, 1 | -1, 1)",
     "(4, 2, 1 | 2, -1)"},
    {"the first one transposed: rows before what is summed over all the same",
     {"matmul", {{32, 16}, {32, 16}}, product_ta},
     8,
     {{4, 2}, {4, 1}},
     "(2, 4, 1 | 1, 2) (2, 4, 1 | 1, -1)",
     "(2, 4, 1 | 2, -1)"},
    {"a dim of size 0 has any number of parts",
     {"matmul", {{0, 32}, {32, 16}}, product},
     2,
     {{2, 1}, {1, 1}},
     "(2, 1, 1 | 2, -1) (2, 1, 1 | -1, -1)",
     "(2, 1, 1 | 2, -1)"},
    {"three dims",
     {"matmul", {{16, 32}, {32, 16}}, product},
     8,
     {{2, 2}, {2, 2}},
     "(2, 2, 2 | 2, 1) (2, 2, 2 | 1, 0)",
     "(2, 2, 2 | 2, 0)"},
    {"batch dims first",
     {"matmul", {{4, 2, 8, 6}, {4, 2, 6, 8}}, product},
     8,
     {{2, 2, 1, 1}, {2, 2, 1, 2}},
     "(2, 2, 1, 1, 2 | 4, 3, -1, -1) (2, 2, 1, 1, 2 | 4, 3, -1, 0)",
     "(2, 2, 1, 1, 2 | 4, 3, -1, 0)"},
    {"a batch dim of size 1 repeats",
     {"matmul", {{4, 8, 6}, {1, 6, 8}}, product},
     8,
     {{2, 2, 2}, {1, 2, 1}},
     "(2, 2, 2, 1 | 3, 2, 1) (2, 2, 2, 1 | 1, -1)",
     "(2, 2, 2, 1 | 3, 2, -1)"},
    {"a batch dim of size 1 of a matrix with one column",
     {"matmul", {{4, 8, 4}, {1, 4, 1}}, product},
     8,
     {{2, 2, 2}, {1, 2, 1}},
     "(2, 2, 2, 1 | 3, 2, 1) (2, 2, 2, 1 | 1, -1)",
     "(2, 2, 2, 1 | 3, 2, -1)"},
    {"the same of one row",
     {"matmul", {{1, 1, 4}, {4, 4, 8}}, product},
     8,
     {{1, 1, 2}, {2, 2, 2}},
     "(2, 1, 2, 2 | -1, 1) (2, 1, 2, 2 | 3, 1, 0)",
     "(2, 1, 2, 2 | 3, -1, 0)"},
    {"a batch dim of size 1 among others, in the first one",
     {"matmul", {{2, 1, 8, 6}, {2, 4, 6, 8}}, product},
     8,
     {{2, 1, 1, 2}, {2, 2, 2, 1}},
     "(2, 1, 2, 2, 1 | 4, -1, 2) (2, 1, 2, 2, 1 | 4, 1, 2, -1)",
     "(2, 1, 2, 2, 1 | 4, 1, -1, -1)"},
    {"one product for all of a batch",
     {"matmul", {{4, 8, 6}, {6, 8}}, product},
     8,
     {{2, 2, 2}, {2, 1}},
     "(2, 2, 2, 1 | 3, 2, 1) (2, 2, 2, 1 | 1, -1)",
     "(2, 2, 2, 1 | 3, 2, -1)"},
    {"no split at all: every rank does the same",
     {"matmul", {{16, 32}, {32, 16}}, product},
     8,
     {{1, 1}, {1, 1}},
     "(1, 1, 1, 8 | -1, -1) (1, 1, 1, 8 | -1, -1)",
     "(1, 1, 1, 8 | -1, -1)"},
    {"a bias follows the dim that it is added to",
     {"add", {{16, 32}, {32}}, sum},
     8,
     {{2, 4}, {4}},
     "(2, 4 | 1, 0) (2, 4 | 0)",
     "(2, 4 | 1, 0)"},
    {"leading dims of the longer operand first, though it is the second",
     {"add", {{32}, {16, 32}}, sum},
     8,
     {{4}, {2, 4}},
     "(2, 4 | 0) (2, 4 | 1, 0)",
     "(2, 4 | 1, 0)"},
    {"a transposition permutes the map",
     {"transpose", {{16, 32}}, turned},
     8,
     {{2, 4}},
     "(2, 4 | 1, 0)",
     "(2, 4 | 0, 1)"},
    {"along what a softmax sums over: ranks exchange sums (theirs refuses it)",
     {"softmax", {{16, 32}}, softmax_last},
     8,
     {{2, 4}},
     "(2, 4 | 1, 0)",
     "(2, 4 | 1, 0)"},
    {"a table of which every rank has all rows: repeated last",
     {"gather", {{8, 4}, {16, 8}}, lookup},
     8,
     {{4, 1}, {1, 1}},
     "(4, 1, 1, 1, 2 | 4, -1) (4, 1, 1, 1, 2 | -1, -1)",
     "(4, 1, 1, 1, 2 | 4, -1, -1)"},
    {"a table cut along its rows: repeated first",
     {"gather", {{8, 4}, {16, 8}}, lookup},
     8,
     {{1, 1}, {4, 1}},
     "(2, 1, 1, 4, 1 | -1, -1) (2, 1, 1, 4, 1 | 1, -1)",
     "(2, 1, 1, 4, 1 | -1, -1, -1)"},
    {"a table cut along its rows by all",
     {"gather", {{8, 4}, {16, 8}}, lookup},
     8,
     {{1, 1}, {8, 1}},
     "(1, 1, 8, 1 | -1, -1) (1, 1, 8, 1 | 1, -1)",
     "(1, 1, 8, 1 | -1, -1, -1)"},
};

TEST(OpStrategy, MatricesAndMaps) {
  for (const MatrixCase& c : kMatrices) {
    SCOPED_TRACE(c.name);
    const OpSpread got = spread_op(c.op, {"", c.splits}, c.devices);
    EXPECT_EQ(texts(got.ins), c.ins);
    EXPECT_EQ(texts(got.outs), c.out);
    EXPECT_FALSE(got.outs_asked);
  }
}

// ---- slices and groups
// ---------------------------------------------------------------------------------

/// Ranks in groups of those that `key` tells alike, by first rank.
template <typename Key>
Groups grouped_by(std::int64_t ranks, const Key& key) {
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> groups;
  for (std::int64_t r = 0; r < ranks; ++r) groups[key(r)].push_back(r);
  std::set<std::vector<std::int64_t>> out;
  for (const auto& [_, group] : groups) out.insert(group);
  return {out.begin(), out.end()};
}

/// Which slice a rank holds: its coordinate on each dim of the tensor, read off the map.
std::vector<std::int64_t> slice_index(const TensorLayout& layout, std::int64_t rank) {
  std::vector<std::int64_t> out, coordinates;  // from the right
  for (auto size = layout.matrix.rbegin(); size != layout.matrix.rend(); ++size) {
    coordinates.push_back(rank % *size);
    rank /= *size;
  }
  for (const std::vector<int>& dims : layout.map) {
    std::int64_t index = 0;
    for (const int d : dims) {
      const auto i = static_cast<std::size_t>(d);
      index = index * layout.matrix[layout.matrix.size() - 1 - i] + coordinates[i];
    }
    out.push_back(index);
  }
  return out;
}

Groups groups_along(const DeviceMatrix& matrix, const std::vector<int>& dims, std::int64_t ranks) {
  return grouped_by(ranks, [&](std::int64_t r) { return group_of(matrix, dims, r); });
}

/// Ranks whose parts of a result add up: they differ in what splits an operand, not the result.
Groups sum_groups(const OpSpread& op, std::int64_t ranks) {
  std::vector<int> dims;
  for (const int d : op.outs[0].repeated()) {
    const std::vector<int> left = op.ins[0].repeated();
    if (std::find(left.begin(), left.end(), d) == left.end()) dims.push_back(d);
  }
  return groups_along(op.ins[0].matrix, dims, ranks);
}

struct OpGroupCase {
  const char* name;
  Op op;
  Splits splits;
  std::vector<Shape> slices;  // of the operands, then the result
  Groups sums, replicas;      // of the result's parts; of the second operand
};
const Groups kAlone = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
const OpGroupCase kOpGroups[] = {
    {"the seed's first product",
     {"matmul", {{16, 32}, {32, 16}}, product},
     {{2, 4}, {4, 1}},
     {{8, 8}, {8, 16}, {8, 16}},
     {{0, 1, 2, 3}, {4, 5, 6, 7}},
     {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
    {"fewer parts than ranks: neighbours repeat",
     {"matmul", {{16, 32}, {32, 16}}, product},
     {{2, 2}, {2, 1}},
     {{8, 16}, {16, 16}, {8, 16}},
     {{0, 2}, {1, 3}, {4, 6}, {5, 7}},
     {{0, 1, 4, 5}, {2, 3, 6, 7}}},
    {"rank 0 sums with rank 1",
     {"matmul", {{256, 784}, {512, 784}}, product_tb},
     {{4, 2}, {1, 2}},
     {{64, 392}, {512, 392}, {64, 512}},
     {{0, 1}, {2, 3}, {4, 5}, {6, 7}},
     {{0, 2, 4, 6}, {1, 3, 5, 7}}},
    {"data parallel",
     {"matmul", {{16, 32}, {32, 16}}, product},
     {{8, 1}, {1, 1}},
     {{2, 32}, {32, 16}, {2, 16}},
     kAlone,
     {{0, 1, 2, 3, 4, 5, 6, 7}}},
    {"columns",
     {"matmul", {{16, 32}, {32, 16}}, product},
     {{1, 1}, {1, 8}},
     {{16, 32}, {32, 2}, {16, 2}},
     kAlone,
     kAlone},
    {"a table cut along its rows: repeated first, so the copies stride",
     {"gather", {{8, 4}, {16, 8}}, lookup},
     {{1, 1}, {4, 1}},
     {{8, 4}, {4, 8}, {8, 4, 8}},
     kAlone,  // along the first operand nothing is summed
     {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
};

TEST(OpStrategy, SlicesAndGroups) {
  for (const OpGroupCase& c : kOpGroups) {
    SCOPED_TRACE(c.name);
    const OpSpread op = spread_op(c.op, {"", c.splits}, 8);
    EXPECT_EQ(op.ins[0].slice_shape(c.op.shapes[0]), c.slices[0]);
    EXPECT_EQ(op.ins[1].slice_shape(c.op.shapes[1]), c.slices[1]);
    EXPECT_EQ(groups_along(op.ins[1].matrix, op.ins[1].repeated(), 8), c.replicas);
    EXPECT_EQ(sum_groups(op, 8), c.sums);
    Shape result = c.slices[2];
    const std::vector<std::int64_t> parts = op.outs[0].splits();
    for (int d = 0; d < result.ndim(); ++d) result[d] *= parts[static_cast<std::size_t>(d)];
    EXPECT_EQ(op.outs[0].slice_shape(result), c.slices[2]);
  }
}

/// A gradient is summed over the ranks that hold the same slice of its parameter.
TEST(OpStrategy, RanksWithEqualSlicesAreTheRepeatedGroups) {
  for (const OpGroupCase& c : kOpGroups) {
    SCOPED_TRACE(c.name);
    const OpSpread op = spread_op(c.op, {"", c.splits}, 8);
    for (const TensorLayout& layout : op.ins) {
      EXPECT_EQ(groups_along(layout.matrix, layout.repeated(), 8),
                grouped_by(8, [&](std::int64_t r) { return slice_index(layout, r); }));
    }
  }
}

/// What MindSpore divides the seed of the backward pass by: how many ranks hold the same slice of
/// the loss. (Ours needs no such division: a gradient is that of the whole loss, whoever computes
/// it.)
TEST(OpStrategy, HowOftenAResultIsRepeated) {
  const auto repeats = [](const Op& op, const Splits& splits, std::int64_t devices) {
    const OpSpread spread = spread_op(op, {"", splits}, devices);
    return static_cast<std::int64_t>(
        group_of(spread.outs[0].matrix, spread.outs[0].repeated(), 0).size());
  };
  EXPECT_EQ(repeats({"matmul", {{64, 64}, {64, 64}}, product}, {{2, 16}, {16, 2}}, 64), 16)
      << "what is summed over is cut 16 times";
  EXPECT_EQ(repeats({"softmax", {{64, 64}}, softmax_last}, {{32, 1}}, 64), 2)
      << "a loss of 32 parts on 64 devices";
  EXPECT_EQ(repeats({"softmax", {{64, 64}}, softmax_last}, {{64, 1}}, 64), 1);
}

// ---- what is refused
// -----------------------------------------------------------------------------------

/// What spread() says, less the last lines: the strategy, the rule and the node.
std::string refusal(const Op& op, const OpShard& shard, std::int64_t devices = 8) {
  try {
    (void)spread_op(op, shard, devices);
  } catch (const Error& error) {
    const std::string message = error.what();
    return message.substr(0, message.find("\n    strategy "));
  }
  return "nothing was refused";
}

/// A dim of size 1 that is no batch dim keeps its entry.
TEST(OpStrategy, MatricesOfOneColumnBehindRepeatedBatchDims) {
  EXPECT_EQ(refusal({"matmul", {{4, 8, 4}, {1, 4, 1}}, product}, {"", {{1, 1, 4}, {1, 4, 1}}}, 4),
            "nothing was refused");
  EXPECT_NE(refusal({"matmul", {{4, 8, 4}, {1, 4, 1}}, product}, {"", {{1, 1, 4}, {1, 1, 1}}}, 4),
            "nothing was refused");
}

struct OpRefusal {
  const char* name;
  Op op;
  OpShard shard;
  const char* message;
};
const Op kProduct = {"matmul", {{16, 32}, {32, 16}}, product};
const DeviceLayout kLayout({2, 4}, {"dp", "mp"});
const OpRefusal kRefusals[] = {
    {"a batch dim of size 1 is not split",
     {"matmul", {{4, 8, 6}, {1, 6, 8}}, product},
     {"", {{2, 2, 2}, {2, 2, 1}}},
     "op 'matmul' (matmul): dim 0 of input 1 of shape [1,6,8] has size 1 and is split; it must "
     "stay whole"},
    {"too few strategies",
     kProduct,
     {"", {{2, 4}}},
     "op 'matmul' (matmul): input 1 of shape [32,16] has no strategy: 1 strategies for 2 inputs; "
     "give each input one"},
    {"too many",
     kProduct,
     {"", {{2, 4}, {4, 1}, {1, 1}}},
     "op 'matmul' (matmul): 3 strategies for 2 inputs; give each input one"},
    {"lengths, of both inputs",
     kProduct,
     {"", {{2, 4, 1}, {4}}},
     "op 'matmul' (matmul): the strategy of input 0 has 3 dims, but its shape [16,32] has 2; give "
     "each dim a number\n"
     "op 'matmul' (matmul): the strategy of input 1 has 1 dims, but its shape [32,16] has 2; give "
     "each dim a number"},
    {"a split below 1, and one that does not divide",
     kProduct,
     {"", {{0, 1}, {1, 3}}},
     "op 'matmul' (matmul): dim 0 of input 0 is split 0 times; it must be at least 1\n"
     "op 'matmul' (matmul): dim 1 of input 1 has size 16, which 3 parts do not divide; legal: 1, "
     "2, 4, 8, 16"},
    {"operands disagree",
     kProduct,
     {"", {{2, 4}, {2, 1}}},
     "op 'matmul' (matmul): dim 1 of input 0 and dim 0 of input 1 are the same (k), but are split "
     "4 and 2 times; split both alike: legal 1, 2, 4, 8, 16, 32"},
    {"more parts than ranks",
     kProduct,
     {"", {{4, 4}, {4, 1}}},
     "op 'matmul' (matmul): its splits make 16 parts, which does not divide 8 devices; legal "
     "products: 1, 2, 4, 8"},
    {"parts that do not divide the ranks",
     {"add", {{6, 4}, {6, 4}}, sum},
     {"", {{3, 1}, {3, 1}}},
     "op 'add' (add): its splits make 3 parts, which does not divide 8 devices; legal products: "
     "1, 2, 4, 8"},
    {"disagreement, a size and the product, all at once",
     kProduct,
     {"", {{5, 4}, {8, 16}}},
     "op 'matmul' (matmul): dim 0 of input 0 has size 16, which 5 parts do not divide; legal: 1, "
     "2, 4, 8, 16\n"
     "op 'matmul' (matmul): dim 1 of input 0 and dim 0 of input 1 are the same (k), but are split "
     "4 and 8 times; split both alike: legal 1, 2, 4, 8, 16, 32\n"
     "op 'matmul' (matmul): its splits make 64 parts, which does not divide 8 devices; legal "
     "products: 1, 2, 4, 8"},
    {"dims that stay whole, of each operand that has them",
     {"attention", {{2, 4, 2, 2, 4}, {2, 4, 2, 4}, {2, 4, 2, 4}}, attend},
     {"", {{2, 1, 1, 1, 2}, {2, 1, 1, 2}, {2, 1, 1, 2}}},
     "op 'attention' (attention): dim 4 of input 0 (e) must stay whole, but is split 2 times; "
     "legal: "
     "1\n"
     "op 'attention' (attention): dim 3 of input 1 (e) must stay whole, but is split 2 times; "
     "legal: "
     "1\n"
     "op 'attention' (attention): dim 3 of input 2 (e) must stay whole, but is split 2 times; "
     "legal: "
     "1"},
    {"heads are not cut in the middle before each has its own rank",
     {"reshape", {{8, 24}}, heads},
     {"", {{1, 6}}},
     "op 'reshape' (reshape): dim 1 of input 0 has size 24 (4 x 6, cut in this order), which 6 "
     "parts "
     "do not divide; legal: 1, 2, 4, 8, 12, 24"},
    {"an alias for two dims of one product",
     kProduct,
     {"", {}, {}, {kLayout("dp", "None"), kLayout("None", "dp")}},
     "op 'matmul' (matmul): 'dp' splits two different dims of the op; use it for one"},
    {"contracted aliases differ",
     kProduct,
     {"", {}, {}, {kLayout("dp", "mp"), kLayout("None", "None")}},
     "op 'matmul' (matmul): dim 0 of input 1 (k) is sharded differently in another input; shard "
     "both the same way"},
    {"layouts of another number of ranks",
     kProduct,
     {"",
      {},
      {},
      {DeviceLayout({2}, {"dp"})("dp", "None"), DeviceLayout({2}, {"dp"})("None", "None")}},
     "op 'matmul' (matmul): its layout has 2 ranks, but there are 8 devices; give it a dim more "
     "for ranks that repeat, or one less"},
    {"two matrices",
     kProduct,
     {"", {}, {}, {kLayout("dp", "mp"), DeviceLayout({4, 2}, {"dp", "mp"})("dp", "mp")}},
     "op 'matmul' (matmul): its layouts are on two matrices, (2, 4 | 1, 0) and (4, 2 | 1, 0); use "
     "one"},
    {"a result that cannot lie so",
     kProduct,
     {"", {{2, 4}, {4, 1}}, {{2, 3}}},
     "op 'matmul' (matmul): dim 1 of result 0 of size 16 cannot be kept in 3 parts; legal: "
     "1, the 1 that the op leaves it in, or these times parts of (2, 4, 1) that cut no other dim "
     "of it"},
    {"a result cut along one free dim, and not enough",
     kProduct,
     {"", {{2, 4}, {4, 1}}, {{1, 12}}},
     "op 'matmul' (matmul): dim 1 of result 0 of size 16 cannot be kept in 12 parts; legal: "
     "1, the 1 that the op leaves it in, or these times parts of (2, 4, 1) that cut no other dim "
     "of it"},
    {"a result in no parts",
     kProduct,
     {"", {{2, 4}, {4, 1}}, {{2, 0}}},
     "op 'matmul' (matmul): dim 1 of result 0 of size 16 cannot be kept in 0 parts; legal: "
     "1, the 1 that the op leaves it in, or these times parts of (2, 4, 1) that cut no other dim "
     "of it"},
    {"a result whose layout does not divide it",
     {"matmul", {{6, 8}, {8, 6}}, product},
     {"", {}, {}, {kLayout("dp", "mp"), kLayout("mp", "None")}, {kLayout("dp", "mp")}},
     "op 'matmul' (matmul): dim 1 of result 0 has size 6, which 4 parts do not divide; legal: 1, "
     "2, 3, 6"},
    {"as many results as the op has",
     kProduct,
     {"", {{2, 4}, {4, 1}}, {{2, 1}, {1, 1}}},
     "op 'matmul' (matmul): 2 output strategies for 1 results; give each one"},
};

TEST(OpStrategy, Refusals) {
  for (const OpRefusal& c : kRefusals) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(refusal(c.op, c.shard), c.message);
  }
}

TEST(OpStrategy, ARefusalEndsWithStrategyRuleAndNode) {
  try {
    (void)spread_op(kProduct, {"", {{3, 4}, {4, 1}}}, 8);
    FAIL() << "16 rows in 3 parts";
  } catch (const Error& error) {
    const std::string message = error.what(), file = "shard/op_strategy_test.cpp:";
    const std::size_t begin = message.find("\n    strategy "), end = message.find(file);
    ASSERT_NE(end, std::string::npos) << message;
    EXPECT_EQ(
        message.substr(begin, end - begin),
        "\n    strategy ((3, 4), (4, 1)) for matmul with rule m k, k n -> m n | each 0 1 on 8 "
        "devices, node %2 = matmul(%0, %1), written at ");
  }
}

// ---- results, batch inputs, states
// ---------------------------------------------------------------------

TEST(OpStrategy, AResultMayBeScattered) {
  const Splits ins = {{2, 4}, {4, 1}};
  EXPECT_EQ(texts(spread_op(kProduct, {"", ins, {{8, 1}}}, 8).outs), "(2, 4, 1 | (2, 1), -1)");
  EXPECT_EQ(texts(spread_op(kProduct, {"", ins, {{2, 4}}}, 8).outs), "(2, 4, 1 | 2, 1)");
  EXPECT_EQ(texts(spread_op(kProduct, {"", ins, {{1, 1}}}, 8).outs), "(2, 4, 1 | -1, -1)");
  const OpSpread named = spread_op(
      kProduct,
      {"", {}, {}, {kLayout("dp", "mp"), kLayout("mp", "None")}, {kLayout({"dp", "mp"}, "None")}},
      8);
  EXPECT_TRUE(named.outs_asked);
  EXPECT_EQ(texts(named.outs), "(2, 4 | (1, 0), -1)");
}

/// 8 parts of 512 rows that become 4 x 128: as splits and as a layout.
TEST(OpStrategy, ALayoutMayCutSeveralFactorsWithOneAxis) {
  const auto make = [](const std::vector<Value>& in) { return reshape(in[0], {4, 128, 1024}); };
  const Op op = {"reshape", {{512, 1024}}, make};
  const DeviceLayout on({8, 4}, {"dp", "mp"});
  const OpSpread splits = spread_op(op, {"", {{8, 4}}}, 32);
  EXPECT_EQ(texts(splits.ins), "(4, 2, 4 | (2, 1), 0)");
  EXPECT_EQ(texts(splits.outs), "(4, 2, 4 | 2, 1, 0)");
  const OpSpread layout = spread_op(op, {"", {}, {}, {on("dp", "mp")}}, 32);
  EXPECT_EQ(texts(layout.ins), texts(splits.ins));
  EXPECT_EQ(texts(layout.outs), texts(splits.outs));
  EXPECT_EQ(join(layout.ins[0].aliases), "dp_0, dp_1, mp");
}

TEST(OpStrategy, BatchInputsAndStates) {
  const auto text_of = [](const std::vector<std::int64_t>& splits) {
    return to_text(spread_tensor("batch input 'x'", {16, 32}, splits, 8));
  };
  EXPECT_EQ(text_of({8, 1}), "(8, 1 | 1, -1)");
  EXPECT_EQ(text_of({2, 2}), "(2, 2, 2 | 1, 0)") << "ranks that are left over come first";
  EXPECT_EQ(text_of({1, 1}), "(8, 1, 1 | -1, -1)");
  try {
    (void)text_of({3, 6});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "batch input 'x': dim 0 of size 16 is split 3 times; legal: 1, 2, 4, 8, 16\n"
                 "batch input 'x': dim 1 of size 32 is split 6 times; legal: 1, 2, 4, 8, 16, 32\n"
                 "batch input 'x': its splits make 18 parts, which does not divide 8 devices; "
                 "legal products: 1, 2, 4, 8");
  }
}

}  // namespace
}  // namespace tessera
